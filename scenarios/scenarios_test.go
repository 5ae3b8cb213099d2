package scenarios

import (
	"slices"
	"testing"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/glossary"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

// scene returns the scene of the scenario for a lock on a topology.
func (s Scenario) scene(lock locks.Spec, on topologies.Spec) faults.Scene {
	w := s.Load(1, lock.Claims)
	return faults.Scene{
		Topology: on.Name, Sites: on.Sites, Nodes: on.Nodes, TTL: w.TTL, Recovery: on.Recovery, Can: on.Can(),
		Claims:   lock.Claims,
		Outlives: lock.Outlives, Shared: lock.Shared, Clocked: lock.Program != nil, Processes: max(s.Processes, 1),
		HeedDeadline: w.HeedDeadline,
	}
}

// TestEveryScenarioIsForSomebody: each scenario applies to some lock, and its plan is valid.
func TestEveryScenarioIsForSomebody(t *testing.T) {
	for _, s := range All {
		if found, ok := Find(s.Name); !ok || found.Doc != s.Doc {
			t.Errorf("%s is found as %+v", s.Name, found)
		}
		if _, mistakes := faults.Parse(s.Planned(faults.OfWorkers), faults.Scene{Can: topologies.Spec{}.Can()},
			s.Duration, 0); len(mistakes) > 0 {
			t.Errorf("%s: %v", s.Name, mistakes)
		}
		right, claimed := 0, map[string]bool{}
		for _, lock := range append(slices.Clone(known.Locks),
			locks.Spec{Sites: locks.OneSite, Program: &locks.Program{}}) {
			for _, on := range topologies.All {
				if !lock.Sites.Fits(on.Sites) || lock.Sites == locks.NoSite {
					continue
				}
				if why := s.Out(s.scene(lock, on)); why == "" && lock.Broken == "" {
					right++
				} else {
					claimed[why] = true
				}
			}
		}
		if right == 0 {
			t.Errorf("%s strains no right lock anywhere: %v", s.Name, claimed)
		}
		w := s.Load(7, history.Claims{})
		if w.Seed != 7 || w.Workers < 2 || w.TTL <= 0 || w.Wait <= 0 || s.Duration <= 0 || s.Doc == "" {
			t.Errorf("%s has the load %+v for %v", s.Name, w, s.Duration)
		}
	}
	if _, ok := Find("nothing"); ok {
		t.Error("there is a scenario of any name")
	}
}

// TestOut tests why a scenario is left out.
func TestOut(t *testing.T) {
	single, _ := topologies.Find("single")
	redlock, _ := topologies.Find("redlock")
	lease, _ := known.Find("lease")
	watchdog, _ := known.Find("watchdog")
	setnx, _ := known.Find("setnx")
	five, _ := known.Find("redlock")
	fair, _ := known.Find("fair")
	for _, tt := range []struct {
		scenario Scenario
		lock     locks.Spec
		on       topologies.Spec
		out      bool
	}{
		{contention, lease, single, false},
		{renewal, watchdog, single, false},
		{lateRelease, watchdog, single, true}, // its lease does not end before a message arrives
		{renewal, lease, single, true},        // it claims no renewal
		{minorityHung, lease, single, true},   // one site has no minority
		{minorityHung, five, redlock, false},  //
		{crash, setnx, single, false},         // it would fail: no lock may rely on that
		{lateHolder, setnx, single, true},     // without leases no holder is late
		{forgetful, five, redlock, false},     // its leases have ended when the server is back
		{lateProcess, lease, single, false},   // its holders obey their deadlines
		{threeSites, lease, single, true},     // it uses one site
		{threeSites, five, redlock, false},    //
		{sharedObject, lease, single, false},  //
		{sharedObject, fair, single, true},    // an object of it has one place in the queue
	} {
		if why := tt.scenario.Out(tt.scenario.scene(tt.lock, tt.on)); (why != "") != tt.out {
			t.Errorf("%s of %s on %s: %q", tt.scenario.Name, tt.lock.Name, tt.on.Name, why)
		}
	}
}

// TestEveryExpectationCanBeMet: for each expectation, the cause occurs in verdicts, the fault exists, and the
// scenario applies to the lock on some topology.
func TestEveryExpectationCanBeMet(t *testing.T) {
	named := 0
	for _, lock := range known.Locks {
		for _, want := range lock.Expect {
			if glossary.FindCause(want.Cause).Name == "" || want.Fault != "" &&
				(lock.Broken != "" || want.Scenario != "") {
				t.Errorf("%s: no cause %q, or a broken lock or a scenario with a fault", lock.Name, want.Cause)
			}
			if want.Sometimes && (lock.Broken != "" || want.Scenario == "") {
				t.Errorf("%s: what a broken lock must show, or by default, is not shown sometimes", lock.Name)
			}
			if _, ok := faults.Find(want.Fault); !ok && want.Fault != "" {
				t.Errorf("%s: there is no fault %q", lock.Name, want.Fault)
			}
			if want.Scenario == "" {
				continue
			}
			named++
			s, ok := Find(want.Scenario)
			met := false
			for _, on := range topologies.All {
				met = met || ok && lock.Sites.Fits(on.Sites) && s.Out(s.scene(lock, on)) == ""
			}
			if !met {
				t.Errorf("%s is not strained by %s anywhere", lock.Name, want.Scenario)
			}
		}
	}
	if named == 0 {
		t.Error("no expectation names a scenario")
	}
}

// TestTheTimeOfAllScenarios: the scenarios of a lock leave 60 s of the three-minute budget for other work and for
// repeated runs, even if they run one after another.
func TestTheTimeOfAllScenarios(t *testing.T) {
	for _, lock := range known.Locks {
		for _, on := range topologies.All {
			if lock.Broken != "" || !lock.Sites.Fits(on.Sites) {
				continue
			}
			sum := time.Duration(0)
			for _, s := range All {
				if s.Out(s.scene(lock, on)) == "" {
					sum += s.Lasts(on.Recovery, lock.Claims.Renews)
				}
			}
			if sum > 120*time.Second {
				t.Errorf("%s on %s: all scenarios take %v: make one shorter", lock.Name, on.Name, sum)
			}
			t.Logf("%s on %s: %v", lock.Name, on.Name, sum)
		}
	}
}
