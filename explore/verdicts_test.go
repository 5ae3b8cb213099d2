package explore

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

// causes returns the verdicts against a lock, with their causes, of all schedules.
func causes(t *testing.T, spec locks.Spec, o Options, change func(*search)) map[string]bool {
	t.Helper()
	return gathered(t, spec, o, change, func(_ *schedule, v *checker.Verdict) string {
		if v == nil {
			return "fine"
		}
		return v.Checker + " " + v.Cause
	})
}

// TestNoVerdictIsLost: with and without reduction, the schedules of a lock have the same verdicts with the same
// causes. Locks are tested with one deviation, two of them with two. One lock must notice a search with a wrong
// dependence, in which commands to one server never depend on each other. At night all locks are tested.
func TestNoVerdictIsLost(t *testing.T) {
	const sensitive = "timestamp"
	for i, spec := range append(explorable(true), explorable(false)...) {
		twice := spec.Name == "lease" || spec.Name == "get-del"
		if spec.Name != sensitive && !twice && (testing.Short() && i%16 > 0 || !live.Nightly() && i%8 > 0) {
			continue
		}
		o := suited(spec, 1)
		if twice {
			o.Deviations, o.Visits = 2, 1
		}
		got := causes(t, spec, o, nil)
		if spec.Name == sensitive && maps.Equal(got, causes(t, spec, o, independent)) {
			t.Errorf("%s: a wrong dependence loses no verdict", spec.Name)
		}
		o.Unreduced = true
		if want := causes(t, spec, o, nil); !maps.Equal(got, want) {
			t.Errorf("%s: without reduction it comes to other verdicts\n%s", spec.Name, difference(got, want))
		}
	}
}

// independent makes a search ignore what servers have done, so that their commands depend on nothing.
func independent(s *search) {
	s.key = func(run *schedule) uint64 {
		defer func(sites []uint64) { run.state.sites = sites }(run.state.sites)
		run.state.sites = make([]uint64, len(run.state.sites))
		return run.key()
	}
}

// TestThreeClients: with one deviation, three clients show what two show only with two deviations. No correct lock is
// blamed. A few locks are tested, and at night all.
func TestThreeClients(t *testing.T) {
	three := func(spec locks.Spec, deviations int) Options {
		o := suited(spec, deviations)
		o.Clients, o.Visits = 3, 1
		return o
	}
	for lock, cause := range map[string]string{"upgrade-drops": "double-grant", "readers-expiry": "premature-loss"} {
		spec := find(t, lock)
		if r := run(t, spec, three(spec, 1)); r.Found == nil || r.Found.Cause != cause {
			t.Errorf("%s with three clients: %s, want %s", lock, r.Verdict(), cause)
		}
		if r := run(t, spec, suited(spec, 1)); r.Found != nil {
			t.Errorf("%s: two clients show it, too: %s", lock, r.Verdict())
		}
	}
	for i, spec := range explorable(false) {
		if !live.Nightly() && i%4 > 0 || testing.Short() && i%8 > 0 {
			continue
		}
		if r := run(t, spec, three(spec, 1)); r.Status != checker.Pass || r.Schedules() < 100 {
			t.Errorf("%s: %s", spec.Name, r.Verdict())
			fine(t, &r)
		}
	}
}

// TestLateAnswersAccuseNoRightLock: searches with three deviations, and a million random schedules, once blamed
// correct locks in these cases. A server forgets a grant or an extension whose reply is still on its way. A server
// forgets a hold before such a grant, so that the grant could begin earlier. A server forgets the fences, so that two
// grants have the same fencing token. A lock does not say whose hold it has released, so the release shows nothing.
func TestLateAnswersAccuseNoRightLock(t *testing.T) {
	paused := Choice{At: 2, Option: 1, What: "w00 reply set: is paused"}
	for name, test := range map[string]struct {
		lock  string
		given []Choice
	}{
		"grant": {"lease", []Choice{paused, {At: 17, Option: 1, What: "w01 reply set: is paused"},
			{At: 20, Option: 6, What: "w00 request eval: comes after all keys were lost"}}},
		"extension": {"lease", []Choice{paused, {At: 22, Option: 1, What: "w01 reply eval: is paused"},
			{At: 23, Option: 6, What: "w00 request eval: comes after all keys were lost"}}},
		"the hold before": {"fair", []Choice{{At: 21, Option: 1, What: "w00 request eval: is paused"},
			{At: 31, Option: 4, What: "w01 request unsubscribe: comes after all keys were lost"},
			{At: 38, Option: 2, What: "w01 reply eval: is paused"},
			{At: 44, Option: 5, What: "w00 reply subscribe: waits for the expiry"}}},
		"the reader before": {"read-write",
			[]Choice{{At: 9, Option: 6, What: "w01 request eval: comes after all keys were lost"},
				{At: 15, Option: 6, What: "w00 request eval: comes after all keys were lost"},
				{At: 19, Option: 1, What: "w00 reply eval: is paused"}}},
		"the clock before": {"redisson-rw", []Choice{{At: 0, Option: 1, What: "w01 start: goes first"},
			{At: 5, Option: 7, What: "w00 request eval: comes after the server's clock jumped"},
			{At: 6, Option: 3, What: "w00 request eval: meets a broken connection"},
			{At: 10, Option: 1, What: "w00 reply eval: is paused"}}},
		"the fences before": {"fenced", []Choice{{At: 1, Option: 2, What: "w00 request eval: is paused"},
			{At: 5, Option: 2, What: "w01 request eval: is lost"},
			{At: 6, Option: 6, What: "w00 request eval: comes after all keys were lost"}}},
		"release": {"once", []Choice{{At: 27, Option: 6, What: "w00 reply set: waits for the expiry"},
			{At: 30, Option: 1, What: "w01 reply set: is paused"},
			{At: 40, Option: 3, What: "w00 reply set: meets a broken connection"}}},
	} {
		o := Defaults
		if o.Visits = 2; test.lock == "fenced" {
			o.Visits = 1
		}
		if f, err := Replay(t, find(t, test.lock), o, test.given); err != nil || f != nil {
			t.Errorf("%s: got %v, %+v, want no violation", name, err, f)
		}
	}
}

// TestAClientHasOneName: a visit to two pages belongs to one client in the trace, in the picture and in all verdicts.
func TestAClientHasOneName(t *testing.T) {
	f := run(t, find(t, "multi-del"), suited(find(t, "multi-del"), 1)).Found
	text := f.Text() + f.Picture + f.Summary
	for _, v := range f.Verdicts {
		text += v.Summary + strings.Join(v.Story, "\n")
	}
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bw\d\d\b`).FindAllString(text, -1) {
		names[name] = true
	}
	if !maps.Equal(names, map[string]bool{"w00": true, "w01": true}) {
		t.Errorf("two clients are called %v", slices.Sorted(maps.Keys(names)))
	}
}
