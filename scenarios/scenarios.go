// Package scenarios is the catalogue of what a lock is strained with: one file a scenario. A scenario is data: a shape of
// load, what breaks meanwhile, and for whom that means anything. It makes visible what a wrong lock does, and judges nothing.
package scenarios

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/faults"
	"hammerlock/workload"
)

// All lists the scenarios: first without faults, then with those of holders, of messages, of servers.
var All = []Scenario{
	contention, manyKeys, twoProcesses, sleepers, extensions, renewal, reentry,
	lateHolder, lateRelease, lateExtension, lateProcess, comeback, crash, waiterCrash, processCrash, cancelled,
	ambiguous, slowGrant, lostWakeup, cutOff, renewalCut,
	minorityHung, minorityRefuses, slowServer, serverHangs, renewalHangs, forgetful,
}

// Scenario is a way to strain a lock.
type Scenario struct {
	Name string
	Doc  string // what it strains
	// For says why the scenario is nothing for the locks of a scene; empty if it is something for them. Nil = for all.
	For       func(faults.Scene) string
	Insists   bool     // no lock may rely on that this does not happen
	Processes int      // that the workers live in; 0 = in the suite itself
	Faults    []string // as faults.Parse reads them; nil = none
	Duration  time.Duration
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

// TTL is that of most scenarios: it ends often in a short run, and is long beside what a busy machine takes for a visit.
const TTL = 400 * time.Millisecond

// Renewed is that of leases that the lock renews: a busy machine must not keep it from doing so in time.
const Renewed = time.Second

// Load is the load of a scenario, with a seed of its own. Leases that the lock renews are longer.
func (s Scenario) Load(seed uint64, renews bool) workload.Shape {
	w := workload.Shape{
		Workers: 16, Keys: 1, Popularity: workload.Even, TTL: TTL, Hold: time.Millisecond, Wait: 2 * time.Second,
		Retry: time.Millisecond, Reenter: 4, Arrivals: workload.Poisson, Seed: seed,
		Heed: true, // leases are short: on a busy machine many a holder is late, which is not the lock's fault
	}
	if renews {
		w.TTL = Renewed
	}
	if s.Shape != nil {
		s.Shape(&w)
	}
	return w
}

// Planned is what breaks, as faults.Parse reads it.
func (s Scenario) Planned() []string {
	if len(s.Faults) == 0 {
		return []string{faults.None}
	}
	return slices.Clone(s.Faults)
}

// Out says why a scenario is left out in a scene: it is nothing for the lock, it cannot be had there, or it breaks what the
// lock relies on. It is empty if the scenario applies.
func (s Scenario) Out(in faults.Scene) string {
	if s.For != nil {
		if why := s.For(in); why != "" {
			return why
		}
	}
	steps, mistakes := faults.Parse(s.Planned(), in, s.Duration, 0)
	if len(mistakes) > 0 {
		return mistakes[0]
	}
	for _, step := range steps {
		if s.Insists {
			break
		}
		if why := step.Fault.Breaks(in); why != "" {
			return fmt.Sprintf("%s breaks what a right lock assumes: %s", step.Fault.Name, why)
		}
	}
	return ""
}

// claim is for locks that claim something.
func claim(claims func(faults.Scene) bool, what string) func(faults.Scene) string {
	return func(s faults.Scene) string {
		if claims(s) {
			return ""
		}
		return "the lock does not claim that " + what
	}
}

var (
	plain   = claim(func(s faults.Scene) bool { return s.Claims.Expires && !s.Claims.Renews }, "a hold ends by itself, and is not renewed")
	expires = claim(func(s faults.Scene) bool { return s.Claims.Expires }, "a hold ends by itself")
	renews  = claim(func(s faults.Scene) bool { return s.Claims.Renews }, "it renews a lease")
	reenter = claim(func(s faults.Scene) bool { return s.Claims.Reentrant }, "its holder can acquire again")
)
