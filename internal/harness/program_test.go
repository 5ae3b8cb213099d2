package harness

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/internal/program"
	"hammerlock/internal/witness"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// locker is a program that holds a lock for two seconds, and releases it.
const locker = `c() { REDISCLI_AUTH=$REDIS_PASSWORD redis-cli -h "${REDIS_NODES%:*}" -p "${REDIS_NODES##*:}" "$@"; }
	c set lock:a 1 nx px 60000; sleep 2; c del lock:a; sleep 0.3`

// TestLiveProgramIsShownAndBroken: the dashboard shows the holders of a watched program. Two faults are injected and
// healed: one at a given time, one at a command of the program. The run reports them.
func TestLiveProgramIsShownAndBroken(t *testing.T) {
	t.Parallel()
	p := Default()
	p.Topologies, p.Locks, p.Duration, p.Attempts, p.Verify, p.Tap, p.Out = topologies.All[:1], nil, 0, 1, true,
		true, t.TempDir()
	p.Faults = []string{"pause-primary@700ms", "heal@900ms", "delay:100ms@granted", "cut@extended"}
	p.Program = &program.Spec{Options: witness.Options{Locks: []string{"lock:*"}}, Command: locker}
	job, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var one sync.Mutex
	var lanes, said bool
	job.Watched = true
	job.Progress = func(e Event) {
		one.Lock()
		defer one.Unlock()
		said = said || strings.Contains(e.Said, " is at ")
		if e.Snapshot != nil {
			lanes = lanes || e.Snapshot.Head.Watched &&
				slices.ContainsFunc(e.Snapshot.Lanes, func(s measure.Strip) bool { return s.Mode&measure.Held != 0 })
		}
	}
	runs, err := job.Run(t.Context(), t.Context())
	if err != nil || len(runs) != 1 || !lanes || !said {
		t.Fatalf("%v, %d runs; a holder has a lane: %v; the proxy's address is said: %v", err, len(runs), lanes, said)
	}
	r := &runs[0]
	if !strings.Contains(r.Wire, "1 grant · 1 release") || r.Topology != "wire" || r.Workers != 1 || r.Keys != 1 ||
		!slices.Equal(r.Faults, job.Combinations[0].faultNames()) {
		t.Errorf("%+v", r)
	}
	h, err := history.Open(p.Out + "/" + r.Name + "/" + results.HistoryFile)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Space.Free()
	var seen []int64
	for _, op := range h.Ops {
		if op.Kind == history.Fault || op.Kind == history.Heal {
			seen = append(seen, op.Value)
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, []int64{0, 0, 1, 1}) || len(h.Faults) != 3 { // no lease is extended
		t.Errorf("faults %v of %v", seen, h.Faults)
	}
}

// faultNames returns the faults in the form of a plan.
func (c *Combination) faultNames() (all []string) {
	for _, s := range c.Steps {
		all = append(all, s.String())
	}
	return all
}

// TestScenariosOfPrograms: scenarios run one after the other, each with its faults for programs.
func TestScenariosOfPrograms(t *testing.T) {
	p := Default()
	p.Attach.Addrs, p.Topologies, p.Out = []string{"127.0.0.1:1"}, nil, t.TempDir()
	p.Faults, p.Attempts, p.Verify, p.Tap = []string{faults.None}, 1, true, true
	p.Scenarios = scenarios.Programs()
	p.Program = &program.Spec{Options: witness.Options{Locks: []string{"lock:*"}}, Command: "true"}
	job, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	planned := map[string]string{}
	for i := range job.Combinations {
		planned[job.Combinations[i].Scenario.Name] = strings.Join(job.Combinations[i].faultNames(), " ")
	}
	if planned["crash"] != "kill-program@granted:5" || planned["ambiguous"] != "cut@granted/10 cut@released/15" ||
		len(planned) != 5 || job.Parallel() {
		t.Errorf("planned: %v", planned)
	}
	if text := strings.Join(job.LeftOut, "\n"); !strings.Contains(text, "forgetful is left out: ") ||
		!strings.Contains(text, "server-hangs is left out: ") {
		t.Errorf("left out: %s", text)
	}
}
