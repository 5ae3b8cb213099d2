package explore

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
)

// TestRandomSchedulesAccuseNoRightLock: with up to six deviations, no violation of a correct lock is found. At night
// a million schedules can be run: verify explore --schedules 1000000.
func TestRandomSchedulesAccuseNoRightLock(t *testing.T) {
	all, schedules := explorable(false), 5000
	if testing.Short() {
		schedules = 1000
	}
	for _, spec := range all {
		o := suited(spec, 2)
		o.Schedules, o.Seed = (schedules+len(all)-1)/len(all), 7
		r := run(t, spec, o)
		if r.Found != nil {
			t.Errorf("%s is accused: %s\n%s", spec.Name, r.Verdict(), strings.Join(r.Found.Trace, "\n"))
		} else if r.Status != checker.Pass || r.Beyond.Schedules != o.Schedules ||
			20*r.Beyond.Wrong > r.Beyond.Schedules {
			t.Errorf("%s: %v, %s, want %d schedules, most of them whole", spec.Name, r.Status, r.Verdict(), o.Schedules)
		}
	}
}

// TestRandomSchedulesAreCounted: the wanted number of random schedules is run, or fewer if there is no time. They
// find a broken lock without a search before them.
func TestRandomSchedulesAreCounted(t *testing.T) {
	o := bounded(2)
	o.Schedules, o.Seed = 100, 1
	r := run(t, find(t, "lease"), o)
	if r.Status != checker.Pass || r.Beyond.Schedules != 100 ||
		!strings.Contains(r.Verdict(), "no violation in 100 random schedules with up to 6 deviations (seed 1)") {
		t.Errorf("got %v, %s, want 100 random schedules", r.Status, r.Verdict())
	}
	o.Schedules, o.Budget = 1<<30, 300*time.Millisecond
	if r := run(t, find(t, "lease"), o); r.Status != checker.Inconclusive || r.Beyond.Schedules == 0 || r.Reason == "" {
		t.Errorf("got %v, %q, want an inconclusive report with the schedules that were run", r.Status, r.Reason)
	}
	o.Schedules, o.Budget = 1000, 0
	if r := run(t, find(t, "plain-del"), o); r.Found == nil || len(r.Found.Schedule) != 1 {
		t.Errorf("got %s, want a violation with one deviation", r.Verdict())
	}
}
