package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"hammerlock/checker"
	"hammerlock/internal/human"
)

const ms = time.Millisecond

func TestAPercentileNeedsObservationsBeyondIt(t *testing.T) {
	for _, c := range []struct {
		q    float64
		n    int64
		want bool
	}{{0.5, 9, false}, {0.5, 10, true}, {0.99, 499, false}, {0.99, 500, true}, {0.999, 4999, false},
		{0.999, 5000, true}} {
		if got := Supports(c.q, c.n); got != c.want {
			t.Errorf("quantile %v of %d: supported %v", c.q, c.n, got)
		}
	}
}

// sample is a record with long numbers everywhere.
func sample(topology, lock string) Run {
	cost := 281.25
	ns := func(d time.Duration) *int64 { n := int64(d); return &n }
	p := Percentiles{Count: 123456, P50: ns(281 * ms), P90: ns(12345 * ms), P99: ns(Beyond), P999: ns(Beyond),
		Max: int64(3599 * time.Second), Mean: int64(999 * ms)}
	starving := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	return Run{
		Topology: topology, Lock: lock, Command: "bench --topology " + topology,
		Settings: map[string]string{"server": "Redis 7.0.15"},
		Config: Config{Workers: 32, Keys: 1, TTL: int64(5 * time.Second), Hold: int64(ms),
			Duration: int64(7 * time.Second)},
		Cost:  Cost{RoundTrips: &cost, Commands: &cost, ServerCPU: &cost},
		Views: Views{Acknowledged: 123456, Final: 1234, Lost: 122222},
		Verdicts: []checker.Verdict{{Checker: "lost-updates", Status: checker.Fail, Cause: "lost-update",
			Summary: "122 222 of 123 456 acknowledged page views lost, 1 234 counted"}},
		Latency: Latencies{Acquire: p, Response: p, Hold: p, Release: p, Handoff: p, Try: p},
		Waiting: Waiting{Unfinished: p, Censored: 123456, Response: p, RandomWaiter: p,
			Woken: []Woken{{"poll", 12, 3, p}, {"signal", 1, 1, p}}},
		Fairness: Fairness{Jain: 0.123, Starving: len(starving), StarvingWorkers: starving,
			Worst: Worker{Worker: 3, Visits: 12, Mean: int64(12345 * ms), Longest: int64(12345 * ms)}},
		Generator: Generator{State: Saturated, Reasons: []string{"closed loop on the servers' cores",
			"machine 99 % busy"}},
		Errors: map[string]int64{"acquire failed quorum": 9399, "acquire unknown timeout": 12,
			"release unknown dropped": 3},
	}
}

func TestTablesFitTheirWidthAndSayTheVerdictFirst(t *testing.T) {
	one := []Run{sample("single", "lease")}
	many := []Run{sample("single", "lease"), sample("sentinel", "lease"), sample("redlock", "redlock")}
	for name, runs := range map[string][]Run{"one": one, "many": many} {
		var b bytes.Buffer
		if err := WriteText(&b, runs); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > human.Width && !strings.Contains(line, "repeat") &&
				name == "many" {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
		order := []string{"SAFETY", "GENERATOR", "acquire", "costs"}
		if name == "one" {
			order = []string{"SAFETY", "GENERATOR", "FAIRNESS", "latency", "cost"}
		}
		at := 0
		for _, word := range order {
			next := strings.Index(b.String()[at:], word)
			if next < 0 {
				t.Errorf("%s: %q is missing or out of order in\n%s", name, word, b.String())
			}
			at += max(next, 0)
		}
		if !strings.Contains(b.String(), "FAIL") || !strings.Contains(b.String(), "122 222") {
			t.Errorf("%s: no word of the failure in\n%s", name, b.String())
		}
	}
}

func TestSafetyIsTheWorstVerdict(t *testing.T) {
	verdict := func(s checker.Status) checker.Verdict { return checker.Verdict{Status: s, Summary: s.String()} }
	for name, c := range map[string]struct {
		verdicts []checker.Verdict
		want     checker.Status
	}{
		"none":         {nil, checker.Inconclusive},
		"pass":         {[]checker.Verdict{verdict(checker.Pass)}, checker.Pass},
		"inconclusive": {[]checker.Verdict{verdict(checker.Pass), verdict(checker.Inconclusive)}, checker.Inconclusive},
		"fail": {[]checker.Verdict{verdict(checker.Inconclusive), verdict(checker.Fail),
			verdict(checker.Pass)}, checker.Fail},
	} {
		r := Run{Verdicts: c.verdicts}
		if got, text := r.Safety(); got != c.want || len(c.verdicts) > 0 && text != c.want.String() {
			t.Errorf("%s: got %s %q, want %s", name, got, text, c.want)
		}
	}
}

// TestSumsOfTheWarmUpAreNoVerdict: if no visit was counted in the measurement, the totals prove nothing.
func TestSumsOfTheWarmUpAreNoVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  Run
		want checker.Status
		says string
	}{
		"visits in the warm-up only": {Run{Views: Views{Acknowledged: 5, Final: 5},
			Errors: map[string]int64{"acquire failed other": 4203},
			Said:   map[string]string{"acquire failed other": "too many open files"}}, checker.Inconclusive,
			"no visit was counted in the measurement; in the warm-up, 5 page views acknowledged, 5 counted, none lost" +
				"; the calls were answered: 4 203 acquire failed other (too many open files)"},
		"lost in the warm-up": {Run{Views: Views{Acknowledged: 5, Final: 4, Lost: 1}}, checker.Fail,
			"1 of 5 acknowledged page views lost, 4 counted"},
		"visits that are counted": {Run{Visits: Visits{Done: 2}, Views: Views{Acknowledged: 5, Final: 5}}, checker.Pass,
			"5 page views acknowledged, 5 counted, none lost"},
	} {
		all, err := c.run.Judge(t.TempDir())
		if err != nil || len(all) != 1 || all[0].Status != c.want {
			t.Fatalf("%s: got %+v, %v", name, all, err)
		}
		if got := strings.ReplaceAll(all[0].Summary, "\u00a0", " "); got != c.says {
			t.Errorf("%s: got %q, want %q", name, got, c.says)
		}
	}
}

// TestARateOfNothingIsNoContradiction: if all visits ended after the measurement, the rate is 0 and the fairness is
// unknown.
func TestARateOfNothingIsNoContradiction(t *testing.T) {
	t.Parallel()
	r := Run{Visits: Visits{Begun: 34, Done: 34}}
	r.Measured = int64(2 * time.Second)
	rate, ended := r.ThroughputText()
	ended = strings.ReplaceAll(ended, "\u00a0", " ")
	if rate != "0" || ended != "0 visits ended in 2.00 s" || r.Fairness.JainText() != "Jain -" {
		t.Errorf("got %q, %q, %q", rate, ended, r.Fairness.JainText())
	}
	for _, m := range Metrics {
		if m.Name == "fairness.jain" && m.Of(&r) != (Reading{}) {
			t.Errorf("a gate reads %+v", m.Of(&r))
		}
	}
}

func TestASavedRunIsWhole(t *testing.T) {
	out := t.TempDir()
	f, err := OpenFolder(out, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Log().Write([]byte("a second\n")); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(out); len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), unfinished) {
		t.Errorf("before the commit there is %v", entries)
	}
	want := sample("single", "lease")
	dir, err := f.Commit(&want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRun(filepath.Join(out, latestLink))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if !bytes.Equal(a, b) {
		t.Errorf("what was read is not what was written:\n%s\n%s", a, b)
	}
	if log, err := os.ReadFile(filepath.Join(dir, LatencyFile)); err != nil || string(log) != "a second\n" {
		t.Errorf("the latency log is %q, %v", log, err)
	}

	second, err := OpenFolder(out, "run-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Commit(&want); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(filepath.Join(out, latestLink)); err != nil || to != "run-2" {
		t.Errorf("latest points to %s, %v", to, err)
	}
	third, err := OpenFolder(out, "run-3")
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Discard(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(out); len(entries) != 3 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestReadRunSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadRun(dir); err == nil || !strings.Contains(err.Error(), "no saved run") {
		t.Errorf("an empty directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, RunFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	var syntax *json.SyntaxError
	if _, err := ReadRun(dir); !errors.As(err, &syntax) {
		t.Errorf("half a record: %v", err)
	}
}

// TestBenchmarkFormat reads the output with benchstat's parser.
func TestBenchmarkFormat(t *testing.T) {
	trips, p99 := 2.5, int64(2*ms)
	run := Run{Topology: "single", Lock: "lease", Config: Config{Workers: 8, Keys: 8},
		Visits:  Visits{Begun: 10_000, Done: 10_000},
		Latency: Latencies{Response: Percentiles{Count: 10_000, P99: &p99}}, Cost: Cost{RoundTrips: &trips}}
	runs := []Run{run, run, {Topology: "single", Lock: "empty"}}
	runs[1].Lock, runs[0].Settings, runs[0].Environment = "watch", map[string]string{"server": "Redis 7"},
		Environment{Procs: 2, OS: "linux"}
	var text bytes.Buffer
	if err := WriteBenchmarks(&text, runs); err != nil {
		t.Fatal(err)
	}
	reader, seen := benchfmt.NewReader(&text, "bench.txt"), map[string]float64{}
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			trips, _ := r.Value("trips/op")
			seen[string(r.Name)] = trips
			if got := r.GetConfig("server"); strings.Contains(string(r.Name), "lease") && got != "Redis 7" {
				t.Errorf("%s: server %q", r.Name, got)
			}
			if ns, ok := r.Value("response-p99-sec"); !ok || ns < 1e-3 || ns > 1e-2 {
				if ns, ok := r.Value("response-p99-ns"); !ok || ns < 1e6 || ns > 1e7 {
					t.Errorf("%s: response p99 %g, %v", r.Name, ns, ok)
				}
			}
		case *benchfmt.SyntaxError:
			t.Error(r)
		}
	}
	if seen["Visit/topology=single/lock=lease/workers=8/keys=8-2"] < 2 ||
		seen["Visit/topology=single/lock=watch/workers=8/keys=8-1"] < 2 || len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

// TestBenchstatPutsRepeatedRunsIntoOneTable: benchstat makes a table for each configuration of the file.
func TestBenchstatPutsRepeatedRunsIntoOneTable(t *testing.T) {
	var runs []Run
	for i, suite := range []string{"v1.0.0", "v1.0.0", "v1.1.0"} {
		runs = append(runs, Run{Name: fmt.Sprint("run-", i), Topology: "single", Lock: "lease",
			Environment: Environment{Suite: suite}, Config: Config{Workers: 8, Keys: 8, Seed: uint64(i)},
			Settings: map[string]string{"server": "Redis 7"}, Visits: Visits{Done: 100}})
		runs[i].Measured = 1
	}
	var text bytes.Buffer
	if err := WriteBenchmarks(&text, runs); err != nil {
		t.Fatal(err)
	}
	var p benchproc.ProjectionParser
	filter, err := benchproc.NewFilter("*")
	if err != nil {
		t.Fatal(err)
	}
	table, err := p.Parse(".config", filter)
	if err != nil {
		t.Fatal(err)
	}
	reader, tables := benchfmt.NewReader(&text, "bench.txt"), map[benchproc.Key]int{}
	for reader.Scan() {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			tables[table.Project(r)]++
		case *benchfmt.SyntaxError:
			t.Error(r)
		}
	}
	if len(tables) != 1 {
		t.Errorf("benchstat would make %d tables of %d runs: %v", len(tables), len(runs), tables)
	}
}

// TestARunNamesHowItsServersKeepThings: settings of the append-only file are only shown if it is on. Attached
// servers also report them if it is off.
func TestARunNamesHowItsServersKeepThings(t *testing.T) {
	for want, settings := range map[string]map[string]string{
		"Redis 7": {"server": "Redis 7", "appendonly": "no", "appendfsync": "everysec",
			"min-replicas-to-write": "0"},
		"Redis 7, aof always": {"server": "Redis 7", "appendonly": "yes", "appendfsync": "always"},
		"Redis 7, aof always, min-replicas 1": {"server": "Redis 7", "appendonly": "yes", "appendfsync": "always",
			"min-replicas-to-write": "1"},
	} {
		if got := (&Run{Settings: settings}).Servers(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
