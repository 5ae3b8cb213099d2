// Package scenarios is the catalogue of what a lock is strained with, by what it is about. A scenario is data: a shape
// of load, what breaks meanwhile, and for whom that means anything. It makes visible what a wrong lock does, and judges
// nothing.
package scenarios

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/workload"
)

// All lists the scenarios in the order in which they are run: first those that show most of what locks get wrong in the
// least time, so that a wrong one fails soon, and that the end of the budget costs least.
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

// Brief are those that ask for every claim of a lock.
var Brief = []Scenario{contention, readers, upgrade, steadyReaders, deadReader, permits, crossing, twoProcesses,
	crash, cancelled,
	extensions, lateRelease, lateCommands, comeback, ambiguous, renewal, renewalHangs, leader, reentry, wear, ticks}

// The classes of what strains a lock most: a verdict on its safety needs one scenario of each.
const (
	Contention  = "contention"
	LateHolders = "late holders"
	Crashes     = "crashes"
	LostAnswers = "lost answers"
)

// Classes lists them.
var Classes = []string{Contention, LateHolders, Crashes, LostAnswers}

// Scenario is a way to strain a lock.
type Scenario struct {
	Name  string
	Class string // one of Classes; empty = it is of none
	Doc   string // what it strains
	// NotFor says why the scenario does not apply to the locks of a scene; empty or nil = it applies.
	NotFor     func(faults.Scene) string
	Assumed    bool     // no lock may assume that this does not happen
	CostJudged bool     // what the load makes the servers do is judged
	Unused     bool     // its holders lose what they hold before they store: no page view need be counted
	Alone      bool     // it needs the machine for itself: nothing runs beside it
	Sites      int      // that a lock lives on which lives on several; 0 = as many as the topology has
	Processes  int      // that the workers live in; 0 = in the suite itself
	Faults     []string // as faults.Parse reads them; nil = none
	Wire       []string // the faults for a program that makes its own load; nil = it is for none
	// where the page views are counted; the zero Spec = where the plan says, as where both are fenced
	Counter workload.CounterSpec
	// MustJudge are the checkers, of liveness and fairness, that must have had enough to judge: both need stretches of
	// time that nothing disturbs, and a run that is about something else has few of them on a busy machine.
	MustJudge []string
	Duration  time.Duration
	Leases    int                   // so many, one after the other, must fit in: it lasts longer where leases do
	Shape     func(*workload.Shape) // what is special about the load; nil = nothing
}

// Find returns the scenario with that name.
func Find(name string) (Scenario, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// TTL is that of most scenarios: it ends often in a short run, and is long beside what a busy machine takes for a
// visit.
const TTL = 400 * time.Millisecond

// Renewed is that of leases that the lock renews: a busy machine must not keep it from doing so in time.
const Renewed = time.Second

// Load is the load of a scenario, with a seed of its own. Leases that the lock renews are longer, and visits that take
// several pages have as many at least.
func (s Scenario) Load(seed uint64, claims history.Claims) workload.Shape {
	w := workload.Shape{
		Workers: 16, Keys: 1, Popularity: workload.Even, TTL: TTL, Hold: time.Millisecond, Wait: 2 * time.Second,
		Retry: time.Millisecond, Reenter: 4, Readers: 0.5, Permits: 1, Arrivals: workload.Poisson, Seed: seed,
		HeedDeadline: true, // leases are short: on a busy machine many a holder is late, which is not the lock's fault
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

// NotAbout are the checkers that the scenario is not about.
func (s Scenario) NotAbout() []string {
	all := []string{history.Liveness, history.Fairness}
	if s.Unused {
		all = append(all, history.Updates)
	}
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(s.MustJudge, name) })
}

// recovery is how long servers may need to be as good as new so that what a scenario leaves after its last fault is
// enough.
const recovery = time.Second

// Lasts is how long the scenario is on servers that need so long to recover, and with leases that the lock renews.
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

// Planned is what breaks, as faults.Parse reads it, where operations come from a source.
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

// Programs are the scenarios for programs that make their own load.
func Programs() []Scenario {
	return slices.DeleteFunc(slices.Clone(All), func(s Scenario) bool { return s.Wire == nil })
}

// Out says why a scenario is left out in a scene: it is nothing for the lock, a fault is unavailable there, or it
// breaks what the lock relies on. It is empty if the scenario applies.
func (s Scenario) Out(in faults.Scene) string {
	program := in.Source == faults.OnWire // what its lock claims is not known
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

// own is for servers that do nothing else: what others ask of them would be taken for the lock's.
func own(s faults.Scene) string {
	if !s.Can.Own {
		return "the servers work for others, too"
	}
	if !s.Can.Count {
		return "what they do is not counted: " + s.Can.Engine + " does not tell"
	}
	return ""
}

// alone is for what befalls the only site: minority-hung asks what befalls one of several.
var alone = faults.When(func(s faults.Scene) bool { return s.Sites > 1 },
	"one of several sites that hangs is what minority-hung is about")

// both is for what two say something for.
func both(a, b func(faults.Scene) string) func(faults.Scene) string {
	return func(s faults.Scene) string {
		if why := a(s); why != "" {
			return why
		}
		return b(s)
	}
}

// claim is for locks that claim something.
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
