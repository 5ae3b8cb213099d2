package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the counters in a file

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// counts runs a lock on a counter, and expects that page views are lost, or that none is lost.
func counts(t *testing.T, counter, lock string, processes int, want checker.Status) *results.Run {
	t.Helper()
	j := job(t, func(p *Plan) { p.Counter, p.Locks, p.Processes = counterNamed(counter), lockNamed(lock), processes })
	var r *results.Run
	live.Again(t, func(int) string {
		if r = decided(t, j); want == checker.Fail && r.Views.Lost == 0 && r.Views.Acknowledged < 20 {
			return fmt.Sprintf("%d page views: too few to lose one", r.Views.Acknowledged)
		}
		return ""
	})
	if status, text := r.Safety(); status != want {
		t.Errorf("got %s: %s", status, text)
	}
	if (r.Views.Lost > 0) != (want == checker.Fail) || r.Views.Final == 0 || r.Counter != counter {
		t.Errorf("got %+v", r.Views)
	}
	return r
}

// rightLock returns a lock that fits the counter.
func rightLock(s workload.CounterSpec) string {
	if s.Fenced {
		return "fenced"
	}
	return "lease"
}

func TestEveryCounterCounts(t *testing.T) {
	t.Parallel()
	for _, s := range workload.AllCounters {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			counts(t, s.Name, rightLock(s), 1, checker.Pass)
			if !s.Fenced {
				counts(t, s.Name, "none", 1, checker.Fail)
			}
		})
	}
}

func TestProcessesShareACounter(t *testing.T) {
	t.Parallel()
	for _, s := range workload.AllCounters {
		if s.Place == workload.InMemory {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			counts(t, s.Name, rightLock(s), 2, checker.Pass)
			if s.Place == workload.InFile && !s.Fenced {
				counts(t, s.Name, "none", 2, checker.Fail)
			}
		})
	}
}

// TestBaselinesLoseNothing lets workers of two processes work without a lock.
func TestBaselinesLoseNothing(t *testing.T) {
	t.Parallel()
	for _, lock := range known.Locks {
		if lock.Counting == locks.TwoSteps {
			continue
		}
		for _, s := range workload.AllCounters {
			if s.Fenced {
				continue
			}
			t.Run(lock.Name+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				processes := 2
				if s.Place == workload.InMemory {
					processes = 1
				}
				live.Again(t, func(int) string {
					r := counts(t, s.Name, lock.Name, processes, checker.Pass)
					n := r.Errors["store failed conflict"]
					if n > 0 && lock.Counting != locks.Optimistic {
						t.Errorf("%d conflicts", n)
					}
					if n == 0 && lock.Counting == locks.Optimistic {
						return "no two workers stored at the same time"
					}
					return ""
				})
			})
		}
	}
}

// TestBaselinesAreJudgedByTheirHistory checks the history of baselines.
func TestBaselinesAreJudgedByTheirHistory(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"incr", "optimistic"} {
		r := decided(t, job(t, func(p *Plan) {
			p.Verify, p.Processes, p.Locks = true, 2, lockNamed(lock)
		}), "lost-updates")
		v := verdict(t, r, "lost-updates")
		if v.Status != checker.Pass || v.Exposed != r.Views.Acknowledged || v.Exposed != r.Views.Final {
			t.Errorf("%s: %s: %s", lock, v.Status, v.Summary)
		}
	}
}

func verdict(t *testing.T, r *results.Run, name string) checker.Verdict {
	t.Helper()
	for _, v := range r.Verdicts {
		if v.Checker == name {
			return v
		}
	}
	t.Fatalf("no verdict %s", name)
	return checker.Verdict{}
}

// stalled holds a worker between load and store for longer than its lease.
func stalled(t *testing.T, counter string, processes int, at ...string) *results.Run {
	t.Helper()
	return decided(t, job(t, func(p *Plan) {
		p.Verify, p.Counter, p.Processes, p.Locks = true, counterNamed(counter), processes, lockNamed("fenced")
		p.Workload.TTL, p.Duration = 400*time.Millisecond, time.Duration(len(at))*time.Second+200*time.Millisecond
		p.Faults = nil
		for _, s := range at {
			p.Faults = append(p.Faults, "stall-worker@"+s)
		}
	}), "lost-updates", "fencing")
}

func TestAFenceStopsWhoSleptThroughTheLease(t *testing.T) {
	t.Parallel()
	for _, s := range workload.AllCounters {
		if !s.Fenced || s.Broken != "" {
			continue
		}
		processes := 2
		if s.Place == workload.InMemory {
			processes = 1
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string {
				r := stalled(t, s.Name, processes, "300ms")
				if v := verdict(t, r, "lost-updates"); v.Status != checker.Pass {
					t.Errorf("lost-updates: %s: %s", v.Status, v.Summary)
				}
				v := verdict(t, r, "fencing")
				if v.Status != checker.Pass || v.Misses["fenced"] != r.Views.Fenced {
					t.Errorf("fencing: %s: %s, %v, %+v", v.Status, v.Summary, v.Misses, r.Views)
				}
				if r.Views.Fenced == 0 {
					return "nobody stored while a holder slept through its lease"
				}
				var text strings.Builder
				want := human.Quantity(r.Views.Fenced, "stale store") + " refused"
				if err := results.WriteText(&text, []results.Run{*r}); err != nil ||
					!strings.Contains(text.String(), want) {
					t.Errorf("the table does not say it: %v\n%s", err, text.String())
				}
				return ""
			})
		})
	}
}

// TestWithoutAFenceTheSameHolderOverwrites does the same on a counter without a fence, and on one whose fence is
// broken. The broken fence rejects a late holder only if another worker stores at the same moment.
func TestWithoutAFenceTheSameHolderOverwrites(t *testing.T) {
	t.Parallel()
	for counter, fencing := range map[string]checker.Status{"redis": checker.Pass, "backstop": checker.Fail} {
		live.Again(t, func(int) string {
			r := stalled(t, counter, 1, "300ms", "1300ms", "2300ms")
			lost, v := verdict(t, r, "lost-updates"), verdict(t, r, "fencing")
			late := lost.Status == checker.Fail && lost.Cause == "overrun" && v.Status == fencing &&
				(fencing != checker.Fail || v.Cause == "stale-store")
			if n := r.Views.Acknowledged; !late && n < 50 {
				return fmt.Sprintf("%d page views: too few to meet a holder who is late", n)
			} else if !late {
				t.Errorf("%s: lost-updates: %s %s: %s; fencing: %s %s: %s", counter, lost.Status, lost.Cause,
					lost.Summary, v.Status, v.Cause, v.Summary)
			}
			return ""
		})
	}
}

// TestACounterLeavesNoFile: no database file of the counter is left after a run. It checks this with real servers,
// and with embedded servers, which have no directory.
func TestACounterLeavesNoFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, server := range []string{"", topologies.EmbeddedName} {
		j := job(t, func(p *Plan) {
			p.Counter, p.RedisServer, p.Duration = counterNamed("sqlite"), server, 200*time.Millisecond
		})
		seen := 0
		j.Progress = func(Event) {
			files, _ := filepath.Glob(filepath.Join(os.TempDir(), "*", "counter.sqlite"))
			seen = max(seen, len(files))
		}
		run(t, j, nil)
		left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
		if err != nil || len(left) > 0 || seen != 1 {
			t.Errorf("server %q: %v, %v left, seen %d times", server, err, left, seen)
		}
	}
}

func TestACounterMustGoWithTheLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Plan)
		words  []string
	}{
		"no token": {func(p *Plan) {
			p.Counter = counterNamed("redis-fenced")
		}, []string{"--lock lease draws none", "use --lock fenced, ", "fence-after"}},
		"no lock": {func(p *Plan) {
			p.Counter, p.Locks = counterNamed("sqlite-fenced"), lockNamed("incr")
		}, []string{"--lock incr is no lock", "redis, topology, memory, sqlite"}},
		"no memory": {func(p *Plan) {
			p.Counter, p.Processes = counterNamed("memory"), 2
		}, []string{"--processes 2", "use redis, topology, sqlite"}},
		"unshared": {func(p *Plan) {
			p.Counter, p.Processes, p.Locks = counterNamed("memory-fenced"), 2, lockNamed("fenced")
		},
			[]string{"--processes 2", "use redis-fenced, topology-fenced, sqlite-fenced"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Default()
			p.Topologies, p.Out = on("single"), t.TempDir()
			c.change(&p)
			_, err := p.Check(t.Context(), nil)
			var usage *UsageError
			if !errors.As(err, &usage) || len(usage.Mistakes) != 1 {
				t.Fatalf("got %v", err)
			}
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("no word of %q in: %v", word, err)
				}
			}
		})
	}
}
