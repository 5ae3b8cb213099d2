package fleet

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/locks/catalogue"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Environment variables that turn the test binary into the coordinator, or an agent, of TestThreeMachines.
const (
	bridgeVariable = "BRIDGE"
	agentVariable  = "HAMMERLOCK_TEST_AGENT" // token of the agent
	machineOne     = "127.77.0.1"
)

// TestThreeMachines lets agents work in two network namespaces for a coordinator in a third. The clock of one agent's
// machine is a day ahead, and its link is cut for 2.5 s during a run. A lease passes, and a mutex of each process
// fails, both judged with the measured slack. A lease whose server forgets a grant fails, too.
func TestThreeMachines(t *testing.T) {
	if os.Getenv(bridgeVariable) == "" {
		t.Parallel()
		outside(t)
		return
	}
	spawner := topologies.OpenSpawner()
	defer spawner.Close()
	addr := serve(t, spawner)
	out := 2500 * time.Millisecond
	if testing.Short() {
		out = 500 * time.Millisecond
	}
	token := NewToken()
	f, err := Open(Options{Count: 2, Listen: machineOne + ":0", Token: token, Version: "v1", Join: live.Deadline,
		Timeout:  live.Deadline / 2,
		MaxSlack: 100 * time.Millisecond, Say: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer machineStarts(t, spawner, "m2", token, f.Address())()
	defer machineStarts(t, spawner, "m3", token, f.Address(), "unshare", "-T", "--fork", "--kill-child", "--monotonic",
		"86400", "--boottime", "86400")()
	b := &bench{t: t, every: 5 * time.Millisecond, Fleet: f, token: token, top: &topologies.Topology{}}
	for _, x := range []threeMachines{{"lease", checker.Pass, true, false}, {"local", checker.Fail, false, false},
		{"lease", checker.Fail, false, true}} {
		live.Again(t, func(n int) string { return x.play(b, addr, fmt.Sprint(n), out) })
	}
}

// threeMachines is a run on these machines.
type threeMachines struct {
	lock string
	want checker.Status
	cut  bool // the second machine is cut off for a while
	lost bool // the server forgets a grant
}

func (x *threeMachines) play(b *bench, addr, number string, out time.Duration) (undecided string) {
	t := b.t
	access := topologies.Access{Name: "server", Addrs: []string{addr}}
	lock, _ := catalogue.Find(x.lock)
	b.orders = crew.Orders{
		Shape: workload.Shape{Workers: 6, Keys: 1, Popularity: workload.Even, TTL: 5 * time.Second,
			Hold: 10 * time.Millisecond, Think: 5 * time.Millisecond,
			Wait: 30 * time.Second, Retry: 5 * time.Millisecond, End: 30 * time.Second, Seed: 1},
		Lock: lock, Sites: []topologies.Access{access}, Counter: crew.Counter{Spec: workload.RedisCounter,
			Access: &access},
		Judged: true, To: 30 * time.Second, Prefix: fmt.Sprint(x.lock, x.lost, number, ":"),
	}
	var cut, whole time.Duration
	h, report := b.play(func(p *playing) {
		if x.cut {
			cut = p.Clock.Now()
			cable(t, "m2", "down")
			p.sends(2, cut+out)
			cable(t, "m2", "up")
			whole = p.Clock.Now()
			p.by(1, whole)
		}
		if x.lost {
			forget(t, p, addr)
		}
	})
	m2, m3 := report.Fleet.Agents[0], report.Fleet.Agents[1]
	t.Logf("%s: %s; m2 within %v, m3 within %v", x.lock, report.Fleet.Text(), time.Duration(m2.Doubt),
		time.Duration(m3.Doubt))
	if report.Lost != "" || !m2.SameClock || m3.SameClock || m3.Exchanges == 0 || m3.Doubt <= 0 {
		t.Errorf("%+v, lost: %q", report.Fleet, report.Lost)
	}
	h.Claims = lock.Claims
	if x.cut {
		injected(h, cut, whole)
	}
	if n := visits(h); n != report.Begun || n == 0 {
		t.Errorf("%d visits ended, %d have begun", n, report.Begun)
	}
	return judged(t, h, "exclusion", x.want)
}

// injected writes the cut of a link into a history, as the suite does for its own faults. A command that was in flight
// may arrive when the link is restored.
func injected(h *history.History, from, to time.Duration) {
	const lane = 1 << 10 // no other worker has this lane
	h.Faults = append(h.Faults, history.Injection{Name: "cable", From: from, To: to,
		Effect: history.Effect{Hits: []history.Party{history.Links}, Blocks: true}})
	h.Ops = append(h.Ops, history.Op{ID: lane<<40 | 1, Worker: -1, Kind: history.Fault, Call: from, Return: from,
		Outcome: history.OK},
		history.Op{ID: lane<<40 | 2, Worker: -1, Kind: history.Heal, Call: to, Return: to, Outcome: history.OK})
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}

// forget lets a server forget a grant. The holder continues when another worker has been granted the same lock.
func forget(t testing.TB, p *playing, addr string) {
	t.Helper()
	first, err := p.Gate.Catch(t.Context(), workload.Granted, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = c.Close() }()
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	second, err := p.Gate.Catch(t.Context(), workload.Granted, workload.AnyKey)
	if err != nil {
		t.Fatal(err)
	}
	second.Go()
	p.until("the store of the second", func(ops []history.Op) bool {
		return slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Kind == history.Store &&
				op.Hold == second.Hold
		})
	})
	first.Go()
}

// judged checks a checker's verdict on a history, unless that is inconclusive.
func judged(t testing.TB, h *history.History, name string, want checker.Status) (undecided string) {
	t.Helper()
	if err := h.Validate(); err != nil {
		t.Fatal(err)
	}
	c, err := checker.Prepare(h)
	if err != nil {
		t.Fatal(err)
	}
	all, err := checker.Judge(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Checker == name {
			t.Logf("%s: %s %s", name, v.Status, v.Summary)
			if v.Status == checker.Inconclusive {
				undecided = v.Summary
			} else if v.Status != want {
				t.Errorf("%s: %s, want %s", name, v.Status, want)
			}
		} else if v.Status == checker.Fail && want == checker.Pass {
			t.Errorf("%s: %s", v.Checker, v.Summary)
		}
	}
	return undecided
}

// outside runs the test again in network namespaces, if these are available.
func outside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"unshare", "nsenter", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
	try := exec.CommandContext(t.Context(), "unshare", "-n", "-m", "-T", "--fork", "sh", "-c",
		"ip link add br0 type bridge && mount -t tmpfs none /run")
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no network or time namespaces here: %v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "-m", "--kill-child", "--fork", "sh",
		"testdata/namespaces.sh", self, "-test.run", "^TestThreeMachines$", "-test.v",
		"-test.timeout", "5m", fmt.Sprintf("-test.short=%v", testing.Short()))
	out, err := cmd.CombinedOutput()
	t.Logf("in the namespaces:\n%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: TestThreeMachines") {
		t.Errorf("in the namespaces: %v", err)
	}
}

// serve starts a server that all machines can reach.
func serve(t *testing.T, spawner *topologies.Spawner) (addr string) {
	t.Helper()
	const port = "6400"
	cmd := exec.CommandContext(t.Context(), "redis-server", "--port", port, "--bind", machineOne, "--save", "",
		"--protected-mode", "no", "--dir", t.TempDir())
	if err := spawner.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	c := redis.NewClient(&redis.Options{Addr: machineOne + ":" + port})
	defer func() { _ = c.Close() }()
	live.Wait(t, "the server", func() bool { return c.Ping(t.Context()).Err() == nil })
	return machineOne + ":" + port
}

// machineStarts starts an agent on a machine. It returns a function that ends the agent.
func machineStarts(t *testing.T, spawner *topologies.Spawner, machine string, token Token, join string,
	in ...string) (end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"netns", "exec", machine}, in...)
	cmd := exec.CommandContext(t.Context(), "ip", append(args, self, "agent", join, machine)...)
	cmd.Env = append(cmd.Environ(), agentVariable+"="+string(token))
	cmd.Stderr = os.Stderr
	if err := spawner.Start(cmd); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Kill() // its worker process ends with it
		_ = cmd.Wait()
	}
}

// cable sets the link of a machine up or down.
func cable(t testing.TB, machine, state string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nsenter", "-t", os.Getenv(bridgeVariable), "-n", "ip", "link", "set",
		strings.Replace(machine, "m", "v", 1), state).CombinedOutput()
	if err != nil {
		t.Errorf("cable: %v: %s", err, out)
	}
}

// testAgent is an agent that the test has started on another machine. It is slow: after it has started a shell, it
// waits for a second, in which the shell may finish.
func testAgent() {
	spawner := topologies.OpenSpawner()
	defer spawner.Close()
	spawn := func(cmd *exec.Cmd) error {
		err := spawner.Start(cmd)
		if filepath.Base(cmd.Path) == "sh" {
			<-time.After(time.Second)
		}
		return err
	}
	err := Work(context.Background(), AgentOptions{Join: os.Args[2], Name: os.Args[3],
		Token: Token(os.Getenv(agentVariable)), Version: "v1", Known: known(),
		Spawn: spawn, Say: func(line string) { fmt.Fprintln(os.Stderr, os.Args[3]+": "+line) }})
	fmt.Fprintln(os.Stderr, err)
}
