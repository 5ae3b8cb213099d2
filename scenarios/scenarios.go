// Package scenarios is the catalogue of situations that strain a lock. A scenario is data: a load, the faults
// during it, and the locks to which it applies. It provokes the errors of a broken lock; the checkers judge them.
package scenarios

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/workload"
)

// All lists the scenarios in the order in which they are run. The first ones find most errors in the least time. So
// a broken lock fails early, and a run that stops at the end of its time budget misses little.
var All = []Scenario{
	contention, twoProcesses, long, minorityHung, lateHolder, crash, threeSites, fourSites,
	readers, upgrade, steadyReaders, deadReader, permits, crossing,
	sharedObject, lateRelease, extensions, variedExtensions, lateExtension, lateCommands, lostExtensions, failingSites,
	twoLeases,
	renewal, renewalCut, renewalHangs, leader, reentry, lateWriter, slowFence, cancelled, ambiguous, refusedWrites,
	heldWrites, failedRelease,
	sleepers, goneWaiters, waiterCrash, comeback, slowGrant,
	lostWakeup, lateProcess, processCrash, minorityRefuses, cost, clocks, serverHangs, cutOff, manyKeys, slowServer,
	slowSite, forgetful, takenOver, movingSlot, wear, wearRenewals, ticks,
}

// Brief lists scenarios that together test every claim of a lock.
var Brief = []Scenario{contention, readers, upgrade, steadyReaders, deadReader, permits, crossing, twoProcesses,
	crash, cancelled,
	extensions, lateRelease, lateCommands, comeback, ambiguous, renewal, renewalHangs, leader, reentry, wear, ticks}

// The classes of scenarios: a verdict on a lock's safety needs one scenario of each class.
const (
	Contention  = "contention"
	LateHolders = "late holders"
	Crashes     = "crashes"
	LostAnswers = "lost answers"
)

var Classes = []string{Contention, LateHolders, Crashes, LostAnswers}

type Scenario struct {
	Name  string
	Class string // one of Classes; empty = none
	Doc   string // what the scenario strains
	// NotFor returns the reason why the scenario does not apply to the locks of a scene; empty or nil = it applies.
	NotFor     func(faults.Scene) string
	Assumed    bool     // the scenario runs although its faults violate an assumption of the lock
	CostJudged bool     // the work that the load causes on the servers is judged
	Unused     bool     // all holders lose the lock before they store, so a run may count no page view
	Alone      bool     // no other scenario runs at the same time, because this one needs the whole machine
	Sites      int      // for locks on several sites: the number of sites; 0 = as many as the topology has
	Processes  int      // number of worker processes; 0 = the workers are in the suite's process
	Faults     []string // in the syntax of faults.Parse; nil = none
	Wire       []string // the faults for a program with its own load; nil = the scenario is not for programs
	// the counter of page views; the zero Spec = the plan's counter
	Counter workload.CounterSpec
	// MustJudge lists those of the checkers of liveness and fairness that must reach a verdict. Both need stretches
	// of time without a disturbance. Most scenarios have too few of them on a busy machine, so they list none.
	MustJudge []string
	Duration  time.Duration
	Leases    int                   // number of leases, one after another, in Duration; longer leases lengthen it
	Shape     func(*workload.Shape) // changes the default load; nil = no change
}

func Find(name string) (Scenario, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// TTL is the lease of most scenarios. It ends often in a short run, and is long compared with a visit on a busy
// machine.
const TTL = 400 * time.Millisecond

// Renewed is the TTL of leases that the lock renews: long enough that a busy machine renews them in time.
const Renewed = time.Second

// Load returns the load of a scenario with this seed. Leases that the lock renews are longer, Renewed instead of
// TTL. If a visit may take several pages, there are at least workload.MostPages pages.
func (s Scenario) Load(seed uint64, claims history.Claims) workload.Shape {
	w := workload.Shape{
		Workers: 16, Keys: 1, Popularity: workload.Even, TTL: TTL, Hold: time.Millisecond, Wait: 2 * time.Second,
		Retry: time.Millisecond, Reenter: 4, Readers: 0.5, Permits: 1, Arrivals: workload.Poisson, Seed: seed,
		HeedDeadline: true, // leases are short, so on a busy machine many holders are late through no fault of the lock
		StopAtEnd:    true,
	}
	if claims.Renews {
		w.TTL = Renewed
	}
	if s.Shape != nil {
		s.Shape(&w)
	}
	if claims.Sets {
		w.Keys = max(w.Keys, workload.MostPages)
	}
	return w
}

// NotAbout lists the checkers whose verdict the scenario does not need.
func (s Scenario) NotAbout() []string {
	all := []string{history.Liveness, history.Fairness}
	if s.Unused {
		all = append(all, history.Updates)
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(s.MustJudge, name) })
}

// recovery is the part of Scenario.Duration that is meant for the recovery of servers. If servers need more, the
// scenario lasts longer.
const recovery = time.Second

// Lasts returns the duration of a scenario. The parameter need is the time in which the servers recover; renews
// means that the lock renews its leases.
func (s Scenario) Lasts(need time.Duration, renews bool) time.Duration {
	d := s.Duration
	if renews {
		d += time.Duration(s.Leases) * (Renewed - TTL)
	}
	if len(s.Faults) > 0 {
		d += max(need-recovery, 0)
	}
	return d
}

// Planned returns the faults for a source of load, in the syntax of faults.Parse.
func (s Scenario) Planned(source faults.Source) []string {
	planned := s.Faults
	if source == faults.OnWire {
		planned = s.Wire
	}
	if len(planned) == 0 {
		return []string{faults.None}
	}
	return slices.Clone(planned)
}

// Programs lists the scenarios for programs with their own load.
func Programs() []Scenario {
	return slices.DeleteFunc(slices.Clone(All), func(s Scenario) bool { return s.Wire == nil })
}

// Out returns the reason why a scenario is left out in a scene. There are three: it does not apply to the lock, a fault
// cannot be injected, or a fault violates an assumption of the lock. An empty text means that the scenario applies.
func (s Scenario) Out(in faults.Scene) string {
	program := in.Source == faults.OnWire // the claims of its lock are unknown
	if in.Claims.Once && s.Name != ticks.Name && !program {
		return "a key of the lock is a tick, which is granted once"
	}
	if s.NotFor != nil && !program {
		if why := s.NotFor(in); why != "" {
			return why
		}
	}
	steps, mistakes := faults.Parse(s.Planned(in.Source), in, s.Duration, 0)
	if len(mistakes) > 0 {
		return mistakes[0].Text
	}
	for _, step := range steps {
		if s.Assumed || program {
			break
		}
		if why := step.Fault.Breaks(in); why != "" {
			return fmt.Sprintf("%s breaks what a right lock assumes: %s", step.Fault.Name, why)
		}
	}
	return ""
}

// own excludes attached servers. It is the NotFor of scenarios that count the servers' work: the requests of other
// users would count as the lock's.
func own(s faults.Scene) string {
	if !s.Can.Own {
		return "the servers work for others, too"
	}
	if !s.Can.Count {
		return "what they do is not counted: " + s.Can.Engine + " does not tell"
	}
	return ""
}

// alone excludes locks on several sites. It is the NotFor of scenarios that minority-hung replaces on several sites.
var alone = faults.When(func(s faults.Scene) bool { return s.Sites > 1 },
	"one of several sites that hangs is what minority-hung is about")

// both makes one NotFor of two. It returns the first reason that is not empty.
func both(a, b func(faults.Scene) string) func(faults.Scene) string {
	return func(s faults.Scene) string {
		if why := a(s); why != "" {
			return why
		}
		return b(s)
	}
}

// claim makes a NotFor that excludes locks without a certain claim. Its second parameter says what the lock must claim.
func claim(claims func(faults.Scene) bool, what string) func(faults.Scene) string {
	return faults.When(func(s faults.Scene) bool { return !claims(s) }, "the lock does not claim that "+what)
}

var (
	plain = claim(func(s faults.Scene) bool { return s.Claims.Expires && !s.Claims.Renews },
		"a hold has a lease that is not renewed")
	expires = claim(func(s faults.Scene) bool { return s.Claims.Expires }, "a hold has a lease")
	renews  = claim(func(s faults.Scene) bool { return s.Claims.Renews }, "it renews a lease")
	fences  = claim(func(s faults.Scene) bool { return s.Claims.Fences }, "it draws fencing tokens")
	shared  = claim(func(s faults.Scene) bool { return s.Shared }, "one object of it serves several workers")
	several = claim(func(s faults.Scene) bool { return s.Sites > 1 && s.Can.Own },
		"it lives on as many servers as the suite starts")
	refused = faults.When(func(s faults.Scene) bool { return s.Waits },
		"a lock that waits inside Acquire refuses no worker")
	reads   = claim(func(s faults.Scene) bool { return s.Claims.Readers }, "readers share it")
	sets    = claim(func(s faults.Scene) bool { return s.Claims.Sets }, "it takes several keys at once")
	reenter = claim(func(s faults.Scene) bool { return s.Claims.Reentrant }, "its holder can acquire again")
)
