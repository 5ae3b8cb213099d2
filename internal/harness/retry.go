package harness

import (
	"iter"
	"math"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/deployment"
)

// Again is a policy for repeating runs without a verdict. It has one factor for each try: how much longer the try is
// than the one before. The first factor is 1.
type Again []int

// Policies of repetition for whole plans. The runs of a job have another policy: see Plan.again.
var (
	NextSeed = Again{1, 1, 1, 1} // for a scenario in which a broken lock must fail
	Doubling = Again{1, 2, 2, 2} // for a fault, or a chapter of the tour, that must show an effect
	Sixteen  = Again{1, 4, 4}    // for a search that measured too little
)

// The method again returns the policy for the runs of a job. The second try is three times as long as the first:
// after one that was only twice as long, many runs would need a third.
func (p *Plan) again() Again {
	return append(Again{1, 3}, slices.Repeat(Again{2}, p.Attempts)...)[:p.Attempts]
}

// Of yields the plan p for the first try, and a changed plan for each further try.
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

// repeat changes the plan to that of the next try, which has the next seed. It multiplies the duration by the
// argument longer. Phases and traces keep their duration.
func (p *Plan) repeat(longer int) {
	p.Workload.Seed++
	if p.steerable() {
		p.Duration *= time.Duration(longer)
	}
}

// longest limits the factor by which the times of a scenario can grow in all repetitions together.
const longest = 8

// The method again changes the combination to that of the next try. The argument by is the factor by which the
// duration grows. The argument why is what was wrong with the last run.
//
// If the argument all is true, all times grow by the factor, including leases. This does not apply if the scenario
// judges costs, since longer leases do not change how often a lock sends requests.
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

// idle returns how long a judge lets the lock be free, without an explanation, while workers wait. If times have grown
// by a factor, planned pauses of holders have grown, too, so the result is as many seconds. If times have not grown it
// is 0, and the judge uses its own limit.
func (c *Combination) idle() time.Duration { return time.Duration(c.Stretched) * time.Second }

// The method short returns the factor by which the times of a scenario must grow for the lock's program to keep its
// leases; 1 = they are long enough.
func (c *Combination) short() int {
	p, ttl := c.Lock.Program, c.Plan.Workload.TTL
	if p == nil || c.Scenario.Name == "" || p.Least <= ttl {
		return 1
	}
	return int((p.Least + ttl - 1) / ttl)
}

// howMuchLonger decides about a repetition of the run. It returns 0 if none is needed, and 1 if the run only ended
// without a verdict. A greater result tells how much too slow the machine, a server or the lock's program was,
// compared with a limit that depends on the lease.
//
// A run without a scenario is only repeated after an unplanned event, such as the death of a server. The end of a
// service's program does not count as one, because that program is under test. After the loss of an agent, a run is
// not repeated, since the repetition would wait for the agent. Agents on this machine are the exception: they are
// restarted.
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
