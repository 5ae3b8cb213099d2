package harness

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// update writes the baselines again instead of comparing them: make baselines.
var update = flag.Bool("update", false, "write results/baselines again")

// baselineFile holds what an uncontended visit costs with every lock on topology single.
var baselineFile = filepath.Join("..", "..", "results", "baselines", "costs.json")

// baseline is nearly free of noise: it counts, and one worker alone is in nobody's way.
type baseline struct {
	RoundTrips float64 `json:"round_trips"`
	Commands   float64 `json:"commands"`
}

// Counts of a short run are off by what is under way when it begins and ends, and by late timers. What has changed
// is still changed in a run that is twice as long.
const (
	baselineTolerance = 0.04
	baselineLooks     = 5
)

// TestAloneBaselines runs one worker with every lock that this server serves and compares what a visit costs with what it
// is known to cost.
func TestAloneBaselines(t *testing.T) {
	want := map[string]baseline{}
	if text, err := os.ReadFile(baselineFile); err == nil {
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
	}
	var got sync.Map
	t.Run("locks", func(t *testing.T) {
		const beside = 4 // what is counted bears neighbours
		for i := range beside {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				someBaselines(t, want, &got, func(at int) bool { return at%beside == i })
			})
		}
	})
	if !*update {
		return
	}
	all := map[string]baseline{}
	for name, b := range got.Range {
		all[name.(string)] = b.(baseline)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(baselineFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// someBaselines measures the locks at some places of the catalogue, one after the other on the same servers.
func someBaselines(t *testing.T, want map[string]baseline, got *sync.Map, mine func(at int) bool) {
	var warm Warm
	defer func() {
		if err := warm.Close(); err != nil {
			t.Error(err)
		}
	}()
	for at, lock := range known.Locks {
		if !mine(at) {
			continue
		}
		j := baselineJob(t, lock)
		if j == nil {
			if old, known := want[lock.Name]; known {
				got.Store(lock.Name, old) // measured where it can be
			}
			continue
		}
		j.Warm = &warm
		b := costOfAVisit(t, j, want[lock.Name])
		got.Store(lock.Name, b)
		if !*update && !b.near(want[lock.Name]) {
			t.Errorf("%s: a visit costs %+v, known is %+v; if that is meant: make baselines", lock.Name, b, want[lock.Name])
		}
	}
}

// baselineJob is nil if the lock cannot live on this server.
func baselineJob(t *testing.T, lock locks.Spec) *Job {
	p := Default()
	p.Topologies, p.Locks, p.Out, p.Counter = on("single"), []locks.Spec{lock}, t.TempDir(), counterNamed("memory")
	if lock.Counting != locks.TwoSteps {
		p.Counter = workload.RedisCounter
	}
	p.Workload.Workers, p.Workload.Seed, p.Workload.Hold, p.Workload.Reenter = 1, 1, 0, 1
	p.Warmup, p.Duration = 50*time.Millisecond, 250*time.Millisecond
	j, err := p.Check(t.Context(), nil)
	if err != nil || len(j.Combinations) != 1 || lock.Runs(j.server) != nil {
		return nil
	}
	j.Command = func(Combination) string { return "" }
	j.Progress = func(Event) {}
	return j
}

// costOfAVisit looks until it sees what is known, or says what it saw in most of its looks. So an update changes nothing but
// what has changed.
func costOfAVisit(t *testing.T, j *Job, want baseline) baseline {
	t.Helper()
	var trips, commands []float64
	for look := range baselineLooks {
		j.Combinations[0].Plan.lengthen(min(look, 1))
		runs, err := j.Run(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if status, text := runs[0].Safety(); status == checker.Fail && j.Combinations[0].Lock.Broken == "" {
			t.Errorf("%s: %s", runs[0].Lock, text)
		}
		c := runs[0].Cost
		if c.Commands == nil {
			continue // no visit in so short a run: the machine paused
		}
		if own := strings.HasPrefix(runs[0].Lock, "rueidislock"); own != (c.RoundTrips == nil) {
			t.Fatalf("%s: round trips %v; connections of its own: %v", runs[0].Lock, c.RoundTrips, own)
		} else if own {
			c.RoundTrips = new(float64) // kept as none
		}
		b := baseline{*c.RoundTrips, *c.Commands}.rounded()
		if b.near(want) {
			return want
		}
		trips, commands = append(trips, b.RoundTrips), append(commands, b.Commands)
	}
	if len(trips) == 0 {
		t.Fatalf("%s: %d runs made no visit", j.Combinations[0].Lock.Name, baselineLooks)
	}
	slices.Sort(trips)
	slices.Sort(commands)
	return baseline{trips[len(trips)/2], commands[len(commands)/2]}
}

func (b baseline) near(want baseline) bool {
	close := func(got, want float64) bool { return math.Abs(got-want) <= baselineTolerance*math.Max(want, 0.25) }
	return close(b.RoundTrips, want.RoundTrips) && close(b.Commands, want.Commands)
}

// rounded leaves out what is under way when a run begins and ends. No lock of the catalogue pays less than a tenth
// of a trip a visit for something.
func (b baseline) rounded() baseline {
	return baseline{math.Round(b.RoundTrips*10) / 10, math.Round(b.Commands*10) / 10}
}

// TestWhatWasBrokenIsNotKept runs with and without a fault: the next run has the same servers, or others.
func TestWhatWasBrokenIsNotKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults []string
		kept   bool
	}{"unbroken": {[]string{"none"}, true}, "broken": {[]string{"kill-primary@100ms", "heal@200ms"}, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live.Again(t, func(int) string {
				kept, incidents := keeps(t, c.faults)
				if len(incidents) > 0 && c.kept {
					return strings.Join(incidents, "; ")
				}
				if kept != c.kept {
					t.Errorf("kept: %v", kept)
				}
				return ""
			})
		})
	}
}

// keeps tells whether a run has the servers of the run before, and what these did by themselves in that.
func keeps(t *testing.T, faults []string) (kept bool, incidents []string) {
	t.Helper()
	var warm Warm
	j := job(t, func(p *Plan) { p.Topologies, p.Faults = on("replica"), faults })
	var before *topologies.Topology
	for round := range 2 {
		p, err := j.prepare(t.Context(), 0, &warm)
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			before = p.deployment.Topology
			_, err = p.Run(t.Context(), t.Context())
			incidents = p.incidents
		} else {
			kept = p.deployment.Topology == before
		}
		if err := errors.Join(err, p.release(t.Context(), &warm, err == nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := warm.Close(); err != nil {
		t.Error(err)
	}
	return kept, incidents
}
