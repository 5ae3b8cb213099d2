package harness

import (
	"iter"
	"math"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/deployment"
)

// Again tells how often a run without a verdict is repeated. It has a factor for each try: how much longer the try is
// than the previous one.
type Again []int

// Policies of repetition. The runs of a job have another policy: see Plan.again.
var (
	NextSeed = Again{1, 1, 1, 1} // for a scenario in which a broken lock must fail
	Doubling = Again{1, 2, 2, 2} // for a fault, or a chapter of the tour, that must show an effect
	Sixteen  = Again{1, 4, 4}    // for a search that measured too little
)

// again returns the policy for the runs of a job. The second try is three times as long: with twice the time, many
// runs would need a third try.
func (p *Plan) again() Again {
	return append(Again{1, 3}, slices.Repeat(Again{2}, p.Attempts)...)[:p.Attempts]
}

// Of yields the plan of each try, until the caller stops asking.
func (a Again) Of(p Plan) iter.Seq[Plan] {
	return func(yield func(Plan) bool) {
		for n, longer := range a {
			if n > 0 {
				p.repeat(longer)
			}
			if !yield(p) {
				return
			}
		}
	}
}

// repeat turns the plan into that of the next try, with the next seed and a longer duration. Phases and traces keep
// their duration.
func (p *Plan) repeat(longer int) {
	p.Workload.Seed++
	if p.steerable() {
		p.Duration *= time.Duration(longer)
	}
}

// longest is the largest factor by which the times of a scenario can grow.
const longest = 8

// again turns the combination into a repetition. The argument by is the factor by which the repetition is longer. If
// all is true, all times grow, including leases; otherwise only the duration does. If requests are counted, only the
// duration grows, because longer leases do not change how often a lock sends requests. The argument why tells what was
// wrong with the last run.
func (c *Combination) again(by int, all bool, why string) {
	if c.Plan.Service != nil {
		why += "; the next attempt found the service's store as this one left it"
	}
	c.Before = append(c.Before, why)
	before := max(c.Stretched, 1)
	if to := min(before*by, longest); all && !c.Scenario.CostJudged && to > before {
		by = to / before
		c.stretch(by)
	}
	c.Plan.repeat(by)
}

func (c *Combination) stretch(by int) {
	c.Stretched, c.Steps = max(c.Stretched, 1)*by, slices.Clone(c.Steps)
	c.Plan.Workload.Stretch(by)
	for i := range c.Steps {
		c.Steps[i] = c.Steps[i].Stretched(by)
	}
}

// idle returns how long the lock may be free, without an explanation, while workers wait. It grows with the other
// times, because the pause of a stalled holder grows, too. A mutex, for example, may stay in a process for that long.
func (c *Combination) idle() time.Duration { return time.Duration(c.Stretched) * time.Second }

// short returns the factor by which a scenario must be longer so that the lock's program can keep its leases; 1 = it
// is long enough.
func (c *Combination) short() int {
	p, ttl := c.Lock.Program, c.Plan.Workload.TTL
	if p == nil || c.Scenario.Name == "" || p.Least <= ttl {
		return 1
	}
	return int((p.Least + ttl - 1) / ttl)
}

// howMuchLonger returns the factor by which a repetition must be longer. The factor is how much too slow the machine, a
// server or the lock's program was, compared with the limit that follows from the lease. It is 1 if none of them was
// too slow, and 0 if no repetition is needed.
//
// A run without a scenario is only repeated after an unplanned event. The end of a service's program is no such event,
// because that program is under test. A run that lost an agent is not repeated, because a repetition would wait for
// that agent; agents on this machine are started again.
func (x *Run) howMuchLonger() int {
	c, lease := &x.combo, x.combo.Plan.Workload.TTL
	_, stood := x.meter.Stood()
	slow := stood > checker.Margin(lease)
	disturbed := c.Scenario.Name != "" || slow || len(x.incidents) > 0 && !c.Topology.Can().Lock
	if status, _ := x.run.Safety(); status != checker.Inconclusive || !c.Plan.Verify || !disturbed ||
		x.run.Interactive || x.missing && !c.Plan.Fleet.Local {
		return 0
	}
	if c.Scenario.Name == "" || lease == 0 || c.Plan.Program != nil {
		return 1
	}
	by := max(float64(stood)/float64(checker.Margin(lease)),
		float64(x.watch.Silent)/float64(deployment.Patience(lease)))
	if d := x.run.Driver; d != nil {
		by = max(by, float64(d.P50)/float64(checker.Prompt(lease)))
	}
	return max(int(math.Ceil(min(by, longest))), 1)
}
