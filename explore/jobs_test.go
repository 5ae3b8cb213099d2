package explore

import (
	"reflect"
	"runtime"
	"testing"

	"hammerlock/internal/live"
)

// TestWorkersMakeNoDifference: several jobs run the same schedules as one job, merge the same ones, and find the same
// counterexample first. This holds for the search and for random schedules.
func TestWorkersMakeNoDifference(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	every := 15 // one in this many locks is tested
	if testing.Short() {
		every = 30
	} else if live.Nightly() {
		every = 5
	}
	for i, spec := range append(explorable(true), explorable(false)...) {
		if i%every > 0 && (testing.Short() || spec.Name != "lease") {
			continue
		}
		upTo := suited(spec, 1)
		random := suited(spec, 1)
		random.Schedules, random.Seed = 40, 3
		all := []Options{upTo, random}
		// one visit: the schedules that are spared in a level depend on those that have run in it
		if spec.Name == "lease" && !testing.Short() {
			two := upTo
			two.Visits, two.Deviations = 1, 2
			all = append(all, two)
		}
		for _, o := range all {
			o.Jobs = 1
			want := withoutTimes(run(t, spec, o))
			for _, jobs := range []int{2, 4} {
				o.Jobs = jobs
				if got := withoutTimes(run(t, spec, o)); !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %d workers: got\n%+v %v %+v, want\n%+v %v %+v", spec.Name, jobs,
						got.Levels, got.Beyond, got.Found, want.Levels, want.Beyond, want.Found)
				}
			}
		}
	}
}

// withoutTimes removes from a report what differs from run to run even with one job: times, and the lock's own random
// choices in a trace.
func withoutTimes(r Report) Report {
	r.Took, r.Options.Jobs = 0, 0
	for i := range r.Levels {
		r.Levels[i].Again = 0
	}
	if r.Found != nil {
		f := r.Found
		r.Found = &Found{Checker: f.Checker, Cause: f.Cause, Schedule: f.Schedule, Number: f.Number}
	}
	return r
}

// TestWhatIsKnownLateIsLeftOut: a job that knows fewer states runs a schedule further than necessary. The unnecessary
// part is removed afterwards.
func TestWhatIsKnownLateIsLeftOut(t *testing.T) {
	s := states{known: map[uint64]bool{}}
	first := &schedule{states: []passed{{1, 1}, {2, 2}, {3, 3}}, options: []int{2, 2, 2, 2}}
	late := &schedule{states: []passed{{7, 2}, {2, 3}, {3, 4}}, options: []int{2, 2, 2, 2, 2}, wrong: errCut}
	early := &schedule{states: []passed{{8, 1}, {9, 2}, {3, 3}}, options: []int{2, 2, 2}, merged: true}
	for _, x := range []*schedule{first, late, early} {
		s.join(x, 0)
	}
	if first.merged || !late.merged || late.wrong != nil || len(late.options) != 3 || len(early.options) != 3 {
		t.Errorf("got %v, %v and %v decisions", first.options, late.options, early.options)
	}
}
