package harness

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hammerlock/checker"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// TestMain runs a worker process if it is started as one.
func TestMain(m *testing.M) {
	os.Exit(crew.Main(context.Background(), crew.Catalogue{
		Locks: known.Locks, Counters: workload.AllCounters,
	}, func() int {
		// A pool without a server dials once a second, even after it was closed. Its goroutine ends after its sleep.
		goleak.VerifyTestMain(m,
			goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
		return 0
	}))
}

// job turns a plan for one combination into a job.
func job(t testing.TB, change func(*Plan)) *Job {
	t.Helper()
	p := Default()
	p.Topologies, p.Out = on("single"), t.TempDir()
	p.Workload.Workers, p.Workload.Seed = 4, 1
	p.Warmup, p.Duration = 100*time.Millisecond, 500*time.Millisecond
	change(&p)
	j, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// on, lockNamed and counterNamed find the parts of a plan by name.
func on(names ...string) []topologies.Spec {
	return all(topologies.Find, names)
}

func lockNamed(names ...string) []locks.Spec {
	return all(known.Find, names)
}

func counterNamed(name string) workload.CounterSpec {
	return all(workload.FindCounter, []string{name})[0]
}

func all[T any](find func(string) (T, bool), names []string) (list []T) {
	for _, name := range names {
		t, ok := find(name)
		if !ok {
			panic("there is no " + name)
		}
		list = append(list, t)
	}
	return list
}

// run runs a job of one combination. The function during, if not nil, runs beside the workload.
func run(t testing.TB, j *Job, during func()) *results.Run {
	t.Helper()
	p, err := j.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if during != nil {
			during()
		}
	}()
	r, err := p.Do(t.Context(), t.Context())
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// decided repeats a job of one combination until it has a verdict. If checkers are named, their verdicts must be
// decided; otherwise the verdict on the whole run.
func decided(t *testing.T, j *Job, checkers ...string) (r *results.Run) {
	t.Helper()
	live.Again(t, func(int) string {
		r = run(t, j, nil)
		if status, text := r.Safety(); len(checkers) == 0 && status == checker.Inconclusive {
			return text
		}
		for _, name := range checkers {
			if v := verdict(t, r, name); v.Status == checker.Inconclusive {
				return name + ": " + v.Summary
			}
		}
		return ""
	})
	return r
}

func pause(d time.Duration) { <-time.After(d) }

// TestProcessesShareALockOfTheServerOnly lets two service instances use their own mutexes, and then a lease.
func TestProcessesShareALockOfTheServerOnly(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string]checker.Status{"lease": checker.Pass, "local": checker.Fail} {
		r := decided(t, job(t, func(p *Plan) { p.Processes, p.Locks = 2, lockNamed(lock) }))
		if status, text := r.Safety(); status != want {
			t.Errorf("%s: got %s: %s", lock, status, text)
		}
		if r.Workers != 4 || r.Visits.Begun == 0 {
			t.Errorf("%s: %+v", lock, r.Visits)
		}
	}
}

// TestProcessesShareASchedule splits an open loop among processes: every visit is due once.
func TestProcessesShareASchedule(t *testing.T) {
	t.Parallel()
	due := func(processes int) int64 {
		r := run(t, job(t, func(p *Plan) {
			p.Processes, p.Workload.Rate, p.Workload.Keys, p.Locks = processes, 500, 50, lockNamed("none")
		}), nil)
		return r.Arrivals.Due
	}
	if one, three := due(1), due(3); one != three || one == 0 {
		t.Errorf("%d visits were due to one process, %d to three", one, three)
	}
}

// TestAloneCostOfAnUncontendedVisit: the cost of a visit by a single worker is known. It is one SET to acquire, and a
// script that calls GET and DEL to release.
func TestAloneCostOfAnUncontendedVisit(t *testing.T) {
	for _, c := range []struct {
		topology        string
		trips, commands float64
	}{{"single", 2, 4}, {"redlock", 10, 20}, {"replica", 2, 4 + 3*2}, {"cluster", 2, 4 + 2}} {
		t.Run(c.topology, func(t *testing.T) {
			t.Parallel()
			j := job(t, func(p *Plan) {
				p.Topologies, p.Workload.Workers, p.Duration = on(c.topology), 1, time.Second
			})
			r := decided(t, j)
			trips, commands, cpu := r.Cost.RoundTrips, r.Cost.Commands, r.Cost.ServerCPU
			if trips == nil || commands == nil || cpu == nil {
				t.Fatalf("the costs are not known: %+v", r.Cost)
			}
			if !near(*trips, c.trips) || !near(*commands, c.commands) {
				t.Errorf("%.2f round trips and %.2f commands a visit, want %v and %v", *trips, *commands,
					c.trips, c.commands)
			}
			if *cpu <= 0 {
				t.Error("no server CPU")
			}
		})
	}
}

func near(got, want float64) bool { return got > want*0.97 && got < want*1.03 }

func TestSameSeedSameConfiguration(t *testing.T) {
	t.Parallel()
	r := run(t, job(t, func(p *Plan) { p.Workload.Seed = 99 }), nil)
	if r.Seed != 99 || r.Settings["server"] == "" || r.Client["MaxRetries"] != "-1" || r.Environment.Go == "" {
		t.Errorf("the record does not name its whole configuration: %+v", r)
	}
	saved, err := results.ReadRun(r.Name)
	if err == nil {
		t.Errorf("a run was saved here: %v", saved)
	}
}

// TestAStoppedJobKeepsWhatItHas stops a job of three runs during the second run.
func TestAStoppedJobKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	const duration = 1500 * time.Millisecond
	j := job(t, func(p *Plan) { p.Locks, p.Duration = lockNamed("lease", "local", "none"), duration })
	live.Again(t, func(int) string {
		stop, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		cause := errors.New("enough")
		j.Progress = func(e Event) {
			if e.Number == 2 && e.Live.At > 200*time.Millisecond {
				cancel(cause)
			}
		}
		runs, err := j.Run(t.Context(), stop)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 3 || len(runs) == 2 && runs[1].Partial == "" {
			return "the second run was over before it was stopped"
		}
		if len(runs) != 2 || runs[0].Partial != "" || runs[1].Partial != cause.Error() {
			t.Fatalf("got %d runs: %+v", len(runs), runs)
		}
		switch m := time.Duration(runs[1].Measured); {
		case m == duration:
			return "the second run was measured to its end before it was stopped"
		case m <= 0 || m > duration:
			t.Errorf("the partial run measured %v", m)
		}
		return ""
	})
}

// TestMemoryDoesNotGrowWithTheRun compares a run with one of ten times as many operations.
func TestMemoryDoesNotGrowWithTheRun(t *testing.T) {
	heap := func(d time.Duration) uint64 {
		var m runtime.MemStats
		j := job(t, func(p *Plan) {
			p.Locks, p.Counter, p.Workload.Hold, p.Duration = lockNamed("none"), counterNamed("memory"), 0, d
		})
		run(t, j, func() {
			pause(d)
			runtime.GC()
			runtime.ReadMemStats(&m)
		})
		return m.HeapAlloc
	}
	short, long := heap(300*time.Millisecond), heap(3*time.Second)
	if long > short+32<<20 { // a tenth of the memory that the operations of the longer run would take
		t.Errorf("%d bytes in use after 0.3 s, %d after 3 s", short, long)
	}
}

func TestCheckFindsEveryMistake(t *testing.T) {
	p := Default()
	p.Workload.Workers, p.Workload.Keys, p.Workload.TTL, p.Workload.Wait = -1, 0, time.Microsecond, 0
	p.Workload.Rate, p.Workload.Think = 1e9, time.Second
	p.Workload.Arrivals, p.Workload.Popularity, p.Profile = "never", "loved", "slow"
	p.Warmup, p.Duration, p.RedisServer, p.Out = -time.Second, 0, "/bin/ls", "/proc/x"
	_, err := p.Check(t.Context(), human.Mistakes{human.Wrong("", "first of all")})
	var usage *UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"first of all", "--workers -1", "--pages 0", "--lease 1µs",
		"--patience 0s", "--rate 1e+09", "--think", `"never"`, `"loved"`, `"slow"`, "--warmup -1s", "--duration 0s",
		"/bin/ls", "--out /proc/x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in:\n%v", want, err)
		}
	}
}

// TestServersThatCannotBeSetAreAMistake: if the plan names all topologies, such servers are left out instead.
func TestServersThatCannotBeSetAreAMistake(t *testing.T) {
	for want, set := range map[string]func(*Plan){
		"topology single has no replicas": func(p *Plan) {
			p.Topologies, p.MinReplicas = on("single"), 1
		},
		"topology redlock has no replicas": func(p *Plan) {
			p.Topologies, p.MinReplicas = on("redlock"), 1
		},
		"--min-replicas 2: a primary of topology cluster has no more than 1": func(p *Plan) {
			p.Topologies, p.MinReplicas = on("cluster"), 2
		},
		"--min-replicas -1: from 0 to 3": func(p *Plan) { p.MinReplicas = -1 },
		"embedded keeps no log": func(p *Plan) {
			p.Topologies, p.RedisServer, p.Durable = on("single"), "embedded", topologies.SyncAlways
		},
		"with --addr nothing is started": func(p *Plan) {
			p.Attach.Addrs, p.Attach.Prefix, p.Durable = []string{"127.0.0.1:1"}, "x", topologies.SyncAlways
		},
	} {
		p := Default()
		set(&p)
		if _, err := p.Check(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	p := Default()
	p.MinReplicas, p.Durable, p.Out = 1, topologies.SyncAlways, t.TempDir()
	j, err := p.Check(t.Context(), nil)
	if err != nil || len(j.Combinations) != 3 || len(j.LeftOut) != 2 {
		t.Fatalf("on all topologies: %v, %+v", err, j)
	}
	for i := range j.Combinations {
		if o := j.deployment(j.Combinations[i]).Options; o.MinReplicas != 1 ||
			o.Durable != topologies.SyncAlways || o.Power {
			t.Errorf("%s: started with %+v", j.Combinations[i].Name(), o)
		}
	}
	p.Topologies, p.MinReplicas = on("single", "sentinel"), 0
	if j, err = p.Check(t.Context(), nil); err != nil || !j.Combinations[0].scene().Keeps ||
		j.Combinations[1].scene().Keeps {
		t.Errorf("who relies on a log: %v", err)
	}
}

// TestATopologyThatDoesNotComeUpLeavesNothing asks for a topology that the server cannot serve.
func TestATopologyThatDoesNotComeUpIsAnError(t *testing.T) {
	t.Parallel()
	j := job(t, func(*Plan) {})
	j.Combinations[0].server = topologies.Server{Path: "/bin/false", Name: "Redis", Version: "7"}
	runs, err := j.Run(t.Context(), t.Context())
	if err == nil || len(runs) != 0 ||
		!strings.Contains(err.Error(), "single with lock lease: topology single: node n1") {
		t.Errorf("got %d runs, %v", len(runs), err)
	}
}
