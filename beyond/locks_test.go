package beyond_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"hammerlock/beyond"
	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/internal/crew"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestMain turns the test into a worker process of verify when it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == crew.Command {
		os.Exit(cli.Verify(context.Background(), cli.Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout,
			Stderr: os.Stderr, More: beyond.Catalogue}))
	}
	os.Exit(m.Run())
}

func verify(t *testing.T, args ...string) []results.Run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append(args, "--out", t.TempDir(), "--json", "--quiet")
	code := cli.Verify(t.Context(), cli.Env{Args: args, Stdout: &stdout, Stderr: &stderr, More: beyond.Catalogue})
	var d cli.Document
	if err := json.Unmarshal(stdout.Bytes(), &d); err != nil || len(d.Runs) == 0 {
		t.Fatalf("verify %q: exit code %d, %v\n%s", args, code, err, stderr.String())
	}
	return d.Runs
}

func locksOn(s topologies.Spec, broken bool) (list []locks.Spec) {
	for _, l := range beyond.Catalogue.Locks {
		if l.Fits(s) && (l.Broken != "") == broken {
			list = append(list, l)
		}
	}
	return list
}

func causes(r *results.Run) map[string]int64 {
	all := map[string]int64{}
	for _, v := range r.Verdicts {
		maps.Copy(all, v.Causes)
	}
	return all
}

// TestRightLocksPass runs every right lock through all scenarios that apply; with -short through one.
func TestRightLocksPass(t *testing.T) {
	each(t, func(t *testing.T, s topologies.Spec) {
		var names []string
		for _, l := range locksOn(s, false) {
			names = append(names, l.Name)
		}
		args := []string{"--topology", s.Name, "--lock", strings.Join(names, ",")}
		if testing.Short() {
			args = append(args, "--scenario", "contention")
		}
		passed := map[string]bool{}
		for _, r := range verify(t, args...) {
			if r.Failed() {
				t.Errorf("%s %s: %v", r.Lock, r.Scenario, causes(&r))
			}
			if status, _ := r.Safety(); status == checker.Pass {
				passed[r.Lock] = true
			}
		}
		for _, name := range names {
			if !passed[name] {
				t.Errorf("%s: nothing was seen of it", name)
			}
		}
	})
}

// TestBrokenLocksAreCaught runs every broken lock under the scenario that its catalogue entry names. With -short,
// it runs one lock for each kind of server, on a single node.
func TestBrokenLocksAreCaught(t *testing.T) {
	each(t, func(t *testing.T, s topologies.Spec) {
		all := locksOn(s, true)
		if testing.Short() {
			if s.Nodes > 1 {
				t.Skip("without -short")
			}
			all = all[:1]
		}
		for _, l := range all {
			t.Run(l.Name, func(t *testing.T) { caught(t, s, l) })
		}
	})
}

// caught repeats a run: on a busy machine, workers may not meet.
func caught(t *testing.T, s topologies.Spec, l locks.Spec) {
	live.Again(t, func(int) (undecided string) {
		r := verify(t, "--topology", s.Name, "--lock", l.Name, "--scenario", l.Expect[0].Scenario, "--attempts", "1")[0]
		status, _ := r.Safety()
		if _, shown := results.Met(l.Expected(""), status, r.Verdicts); shown != "" {
			return ""
		}
		return fmt.Sprintf("got %v, want one of %v: two workers may not have met", causes(&r), l.Expect)
	})
}

// TestTheLastLineOfDefence: with a late holder of a Redis lock, a plain counter loses page views, and a fenced one
// refuses the stale store.
func TestTheLastLineOfDefence(t *testing.T) {
	each(t, func(t *testing.T, s topologies.Spec) {
		if !slices.ContainsFunc(beyond.Catalogue.Counters, func(c workload.CounterSpec) bool {
			return c.Name == s.Name
		}) {
			t.Skip("no counter")
		}
		args := []string{"--topology", "single", "--lock", "fenced", "--fault",
			"stall-worker@300ms,stall-worker@1200ms", "--lease", "400ms", "--workers", "8",
			"--duration", "2500ms", "--attempts", "1"}
		plain := verify(t, append(args, "--counter", s.Name)...)[0]
		if plain.Views.Lost == 0 {
			t.Errorf("a plain counter lost nothing: got %+v", plain.Views)
		}
		fenced := verify(t, append(args, "--counter", s.Name+"-fenced")...)[0]
		if fenced.Views.Fenced == 0 || fenced.Views.Lost > 0 {
			t.Errorf("a fenced counter: got %+v, want stores that were refused, and nothing lost", fenced.Views)
		}
	})
}

// TestALostGrantMeetsADatabase: a failover of Redis forgets a grant, so two workers hold the lock. The database
// then refuses the store of the late one. The fault stops a holder before its work, and resumes it when the next
// worker has the lock.
func TestALostGrantMeetsADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("without -short")
	}
	each(t, func(t *testing.T, s topologies.Spec) {
		if !slices.ContainsFunc(beyond.Catalogue.Counters, func(c workload.CounterSpec) bool {
			return c.Name == s.Name
		}) {
			t.Skip("no counter")
		}
		live.Again(t, func(int) (undecided string) { // on a busy machine the holder may learn of the loss in time
			r := verify(t, "--topology", "sentinel", "--lock", "fenced-clock", "--fault", "lost-grant@300ms", "--lease",
				"4s", "--patience", "4s", "--workers", "8",
				"--duration", "12s", "--attempts", "1", "--counter", s.Name+"-fenced")[0]
			if r.Views.Lost > 0 {
				t.Fatalf("the database let a stale store through: %+v", r.Views)
			}
			if causes(&r)["service-loss"] > 0 && r.Views.Fenced > 0 {
				return ""
			}
			return "no failover forgot a grant, or nobody was refused"
		})
	})
}
