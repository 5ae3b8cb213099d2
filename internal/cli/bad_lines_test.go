package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/history"
	"hammerlock/internal/driver"
)

// badLines are wrong command lines, each with a part of the error that it must cause. Errors tell what is wrong and
// what to type instead.
var badLines = []struct{ line, answer string }{
	// Values that are missing, empty, or a file of another kind.
	{"bench --topology", "--topology: its value is missing, as in --topology single,replica"},
	{"bench --duration", "--duration: its value is missing, as in --duration 10s"},
	{"bench --topology=", `--topology "": no name: there is single, replica`},
	{"bench --plan ''", `--plan "": it is empty: it takes a file; or leave it out`},
	{"bench --out ''", `--out "": it is empty: it takes a dir`},
	{"bench --phases 'steady 2s'", "--phases: no such flag; phases stand in a plan's file, " +
		"as in --plan FILE with phases: [{phase: steady,"},
	{"verify explore --real", "--real: no such flag; verify export RUN --test FILE writes a counterexample as a test"},
	{"bench --fault ''", `--fault "": no name: there is auto, none, kill-primary`},
	{"bench --out notes.txt", "--out notes.txt: notes.txt is a file, and runs are saved in a directory"},
	{"bench --plan .", `--plan ".": it is a directory, and a file is needed`},
	{"bench --plan picture.png", "picture.png: it is no text: a plan is a YAML file; bench plan prints one"},
	{"bench plan two.yaml", "two.yaml:2: a second document begins there, and a plan is one: leave out ---"},
	{"bench plan many.yaml", "many.yaml:1:10: topology: it takes a value, or a list of values\n" +
		"error: many.yaml:2:7: lock: it takes a value, or a list of values\n" +
		"error: many.yaml:3:11: --duration \"5\": a duration has a unit"},
	{"bench plan nosuch.yaml", "open nosuch.yaml: no such file or directory; bench plan prints a plan to begin with"},
	{"verify check notes.txt", "notes.txt: line 1: not the beginning of a history"},
	{"verify check nothing", "nothing: no history: runs of verify keep one (history.bin), those of bench do not"},
	// Saved runs of a newer build, or without a history.
	{"bench report newer", "newer/run.json has schema 99, and this build reads up to 1: a newer one wrote it"},
	{"verify check newer", "newer/run.json has schema 99, and this build reads up to 1: a newer one wrote it"},
	{"bench replay newer", "newer/run.json has schema 99, and this build reads up to 1: a newer one wrote it"},
	{"verify check gone", "gone: no history: runs of verify keep one (history.bin), those of bench do not"},
	{"bench compare notes.txt notes.txt", "notes.txt is no saved run: it has no run.json; " +
		"a run is a directory in results/runs, as latest is"},
	{"bench --redis-server notes.txt",
		`no program "notes.txt" on the path; write ./notes.txt for one in this directory, or embedded`},
	{"verify http --serve '' --visit 'POST http://h/v' --count 'GET http://h/v'",
		`--serve "": it is empty: it takes a command`},
	{"bench --plan long.yaml", "long.yaml: it is longer than a plan can be (1 MiB)"},
	{"verify http --visit 'POST http://me:hunter2@h/v?t=hunter2' --count 'GET http://h/v?api_key=hunter2'",
		`--visit "POST http://...@h/v?t=..."`},
	{"verify http --visit 'POST http://h/v' --count 'GET http://h/v?api_key=hunter2'", "the value of api_key would " +
		"be saved and shown: put it into a variable"},
	{"bench --rate 100rps", `--rate "100rps": more than 0 visits a second, as in 1000/s; did you mean 100/s?`},
	{"verify conformance 'python3 x.py'", "named by its command: did you mean 'exec:python3 x.py'?"},
	{"bench --lock ./driver.py", "named by its command: did you mean exec:./driver.py?"},
	{"bench explain foo", `"foo" is no word of the suite`},
	{"bench help gate", "help gate: no such command; did you mean gates?"},
	{"bench --keys 0", "--pages 0: from 1 to 1000000"},
	{"verify --ttl 5", `--lease "5": a duration has a unit`},
	{"bench --plan empty.yaml", "empty.yaml: it is empty; bench plan prints a plan to begin with"},
	{"bench --lock ''", `--lock "": no name: there is auto, lease, watch, watchdog, leader and `},
	{"bench --lock my_lock", "more: --list has all"},
	{"bench --topology 'single replica'", "names have commas in between: single,replica"},
	{"verify http --visit 'PUSH http://h/v' --count 'GET http://h/v'", "the methods are GET, POST,"},
	{"verify http --visit 'GET 127.0.0.1:80/v' --count 'GET http://h/v'", "an address begins with http:// " +
		"or https:// and a host"},
	{"verify --lock exec:./notes.txt", "chmod +x ./notes.txt makes it a program"},
	{"verify explore --lock 'exec:python3 x.py'", "verify --lock 'exec:python3 x.py' runs it on real servers"},
	{"verify conformance python3 x.py", "or one argument for a program, as 'exec:python3 driver.py'"},
	// Servers that are up already.
	{"bench --addr http://h", "--addr http://...: an address is HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB"},
	{"verify --addr sentinel://h/mymaster", "--topology sentinel says what is there"},
	{"bench --addr rediss://h --tls-ca notes.txt", "--tls-ca: the file has no certificate of an authority"},
	{"bench --addr 127.0.0.1:1 --topology singl", `--topology "singl": there is single, `},
	{"bench --addr 127.0.0.1:1 --fault kill-primary", "needs servers of the suite's own, " +
		"and those of --addr run already"},
	{"bench --user app", "--user: it is about servers that are up already, and without --addr new ones are started"},
	{"verify soak --tls-ca notes.txt --prefix me:", "--prefix: it is about servers that are up already"},
	{"bench ab lock=lease lock=redsync --map a:1=b:1", "--map: it is about servers that are up already"},
	// Files that cannot be written are known before a run.
	{"bench --benchfmt nosuch/b.txt",
		`--benchfmt "nosuch/b.txt": it cannot be written in the directory nosuch: no such file`},
	{"verify --expect --markdown nosuch/m.md",
		`--markdown "nosuch/m.md": it cannot be written in the directory nosuch`},
	{"bench failover --markdown notes.txt/m.md", "it cannot be written in the directory notes.txt: not a directory"},
	{"bench ab lock=lease lock=redsync --html nosuch/c.html", `--html "nosuch/c.html": it cannot be written`},
	{"bench report --html nosuch/r.html runs", `--html "nosuch/r.html": it cannot be written`},
	{"verify explore --sweep pause=0..2ttl --svg nosuch/s.svg", `--svg "nosuch/s.svg": it cannot be written`},
	// Flags of another program, or of another command.
	{"bench --url redis://h", "--url: no such flag; did you mean --addr?"},
	{"bench -c 10 --vus 5", "-c: no such flag; did you mean --workers?"},
	{"bench -w 5", "-w: no such flag; did you mean --workers?"},
	{"bench --requests 5", "--requests: no such flag; see bench --help"},
	{"verify --burst 200", "--burst: no such flag; verify http has it"},
	{"bench version --shrot", "--shrot: no such flag; see bench version --help"},
	{"bench stop", `"stop": unexpected argument; the commands are ab, agent,`},
	{"verify tour 9", `"9": unexpected argument; see verify tour --help`},
	{"bench ab lock=lease lokc=redsync", `"lokc": no such setting of one side; did you mean lock?`},
	// Units, bounds and misspelt values.
	{"bench --duration 10", "a duration has a unit, as in 500ms, 10s or 1m30s; did you mean 10s?"},
	{"bench --hold '2 msec'", "did you mean 2ms?"},
	{"bench --duration 99999999h", `--duration "99999999h": too long: at most 2562047h`},
	{"bench --hold 1h --duration 1s", "--hold 1h0m0s: longer than the run of 3s, in which no visit would end"},
	{"verify --attempts 0", `--attempts "0": from 1 to 100`},
	{"bench --lock nope", `--lock "nope": there is auto, lease, watch, watchdog, leader and `},
	{"bench --gate 'response.p99<-5ms'", "response.p99 is never negative; a change that a comparison may " +
		"not show is in percent"},
	{"bench --gate lost_updates==0", `no metric "lost_updates"; did you mean counter.lost?`},
	{"verify --topology sentinel --fault kill-node:n99@1s", "kill-node:n99@1s: no node n99: there is n1, " +
		"n2, n3, n4, s1, s2, s3"},
	{"bench --topology replica --fault partition:n7/clients", "n7: there is n1, n2"},
	{"bench --workers 1e3", `--workers "1e3": a whole number, as in 32`},
	{"bench --rate 100/m", `--rate "100/m": more than 0 visits a second, as in 1000/s`},
	{"bench --readers 20", `--readers "20": from 0% to 100%; the % is missing, as in 80%`},
	{"bench --arrivals zigzag --rate 5/s", `--arrivals "zigzag": there is poisson, uniform, trace:FILE`},
	{"bench --lock Lease", `--lock "Lease": no such name; did you mean lease?`},
	{"bench --gate jain>0.8", `no metric "jain"; did you mean fairness.jain? bench explain metrics has all`},
	{"bench --gate fairness.idle<20", "fairness.idle is a share, from 0 to 1, or from 0% to 100%"},
	{"bench --gate response.p99=50ms", "the operators are <= >= < > =="},
	{"bench --gate 'throughput>1/s && counter.lost<1'", "one condition a gate: give --gate several times"},
	{"bench --fault kill-primary@2 --topology sentinel", "did you mean @2s?"},
	{"bench --web 8080", `--web "8080": an address is HOST:PORT or :PORT`},
	{"bench --addr localhost:99999", "--addr localhost:99999: a port is from 1 to 65535, as in localhost:6379"},
	// What cannot be together, or does nothing.
	{"bench --lock lease --lock redsync", "--lock: it is given twice; one list has commas, as in --lock lease,redsync"},
	{"bench --lock lease,lease", `--lock "lease": it is named twice; --count 2 runs everything twice`},
	{"bench --arrivals uniform", "--arrivals uniform does nothing without --rate"},
	{"bench --popularity zipf", "--popularity zipf does nothing with one page: --pages 100 has more"},
	{"bench --tui on --json --redis-server embedded --topology single", "--tui on: the dashboard needs a terminal: "},
	{"bench --driver-env A=B", "--driver-env A=B: a name alone, as in --driver-env A"},
	{"bench ab lock=lease lock=redsync --pairs 1", "--pairs 1: at least 9 to tell a difference from noise"},
	{"bench --agents local:2 --processes 4", "--processes 4: with --agents each agent has one worker process: " +
		"leave one of the two out"},
	{"verify --agents a,b,a --lock lease", `--agents "a,b,a": each name once: an agent is waited for by its name`},
	{"bench agent --join http://10.0.0.1:4222", `--join "http://10.0.0.1:4222": an address is nats://HOST:PORT`},
	{"bench --agents 2 --nats 10.0.0.1", `--nats "10.0.0.1": an address is nats://HOST:PORT or tls://HOST:PORT`},
	{"verify --scenario crash --duration 5s", "--duration: scenarios say what the load is and what breaks; " +
		"leave it out, or --scenario"},
	{"verify --fault kill-primary:2s", "kill-primary takes nothing after a colon; a time stands after an @, " +
		"as in kill-primary@2s"},
	{"verify --fault heal@3s", "--fault heal@3s: no fault begins before it, as in kill-primary@2s,heal@5s"},
	{"verify --fault none,kill-primary", "--fault none: it stands alone: leave it out, or the others"},
	// Commands and flags in the wrong place, or written otherwise.
	{"bench -topology single", "no such flag; did you mean --topology?"},
	{"bench --topology:single", "no such flag; did you mean --topology?"},
	{"bench —topology single", "it begins with a long dash: type --topology"},
	{"bench run report", `"report": unexpected argument; did you mean bench report?`},
	{"bench explore --lock lease", `"explore": unexpected argument; did you mean verify explore?`},
	{"verify matrix --lock lease", `"matrix": unexpected argument; the commands are agent, certify, check, `},
	{"verify --lock right", "--lock right: it goes with --expect"},
	{"verify --markdown FILE", "--markdown FILE: it goes with --expect"},
	{"verify --expect --duration 5s", "--duration: --expect runs scenarios, which have loads and faults of their own"},
	{"verify compare a b", `"compare": unexpected argument; did you mean bench compare?`},
	{"verify bench", "bench is a program of its own: bench --help"},
	{"bench help explore", "help explore: no such command; did you mean verify explore?"},
	{"bench completion", "completion: a shell is missing, as in bench completion bash; there is bash, " +
		"fish, powershell, zsh"},
	{"bench completion tcsh", "completion tcsh: there is bash, fish, powershell, zsh"},
	{"bench report", "missing argument: bench report RUN... [flags]; see bench report --help"},
	{"bench search --over rate", "--slo is missing: the objective, as in --slo 'response.p99<50ms'"},
}

// TestABadCommandLineIsAnswered: the error tells what to type instead, and no server starts. PATH is an empty
// directory, so a server could not be found.
func TestABadCommandLineIsAnswered(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", t.TempDir())
	var cut bytes.Buffer
	if f, err := history.Create(&cut, history.Header{}); err != nil || f.Flush() != nil {
		t.Fatal(err)
	}
	const newer, recorded = `{"schema": 99}`, `{"schema": 1, "recorded": true}`
	if err := os.Mkdir("nothing", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"notes.txt": "hello\n", "empty.yaml": "", "picture.png": "\x89PNG\r\n",
		"long.yaml": strings.Repeat("# long\n", 1<<18), "two.yaml": "workers: 3\n---\nworkers: 4\n",
		"many.yaml":      "topology:\nlock: {a: b}\nduration: 5\n",
		"newer/run.json": newer, "newer/history.bin": cut.String(),
		"half/run.json": recorded[:20], "half/history.bin": cut.String(), "gone/run.json": recorded,
		"zero/run.json": recorded, "zero/history.bin": strings.Repeat("\x00", 100),
		"cut/run.json": recorded, "cut/history.bin": cut.String()} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range badLines {
		args, err := driver.Split(c.line)
		if err != nil {
			t.Fatal(err)
		}
		do := Bench
		if args[0] == "verify" {
			do = Verify
		}
		var out, complaints bytes.Buffer
		code := do(t.Context(), Env{Args: args[1:], Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints})
		if code != Usage && code != Broken || !strings.Contains(complaints.String(), c.answer) {
			t.Errorf("%s: got exit code %d, %s; want %s", c.line, code, complaints.String(), c.answer)
		}
		if strings.Contains(complaints.String(), "starting") {
			t.Errorf("%s: a run began", c.line)
		}
	}
	if _, err := os.Stat("results"); err == nil {
		t.Error("a run was saved")
	}
}
