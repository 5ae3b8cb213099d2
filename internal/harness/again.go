package harness

import (
	"iter"
	"slices"
	"time"
)

// Again is a policy of asking again what is undecided: a number for each try, by which it is longer than the one
// before.
type Again []int

// The policies, beside that of the runs of a job.
var (
	NextSeed = Again{1, 1, 1, 1} // a scenario has to show a failure
	Doubling = Again{1, 2, 2, 2} // a fault, or a chapter of the tour, has to show something
	Sixteen  = Again{1, 4, 4}    // a search measured too little
)

// again is the policy of a job's runs: after twice as long, much of it would be asked a third time.
func (p *Plan) again() Again {
	return append(Again{1, 3}, slices.Repeat(Again{2}, p.Attempts)...)[:p.Attempts]
}

// Of are the plans of all tries, for as long as they are asked for.
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

// repeat makes the plan that of another try: it has the next seed and is so many times longer. Phases and traces say
// how long they are.
func (p *Plan) repeat(longer int) {
	p.Workload.Seed++
	if p.steerable() {
		p.Duration *= time.Duration(longer)
	}
}

// longest is how many times longer than planned all times of a scenario can become.
const longest = 8

// again makes the plan of another run, longer by a factor: all its times, or its duration alone, as where requests are
// counted: how often a lock asks does not follow from how long leases are. Why says what was wrong with the one before.
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

// stretch makes all times of the load and of what breaks so many times longer.
func (c *Combination) stretch(by int) {
	c.Stretched, c.Steps = max(c.Stretched, 1)*by, slices.Clone(c.Steps)
	c.Plan.Workload.Stretch(by)
	for i := range c.Steps {
		c.Steps[i] = c.Steps[i].Stretched(by)
	}
}

// idle is how long the lock may be idle beyond what the run explains. The judge's second is stretched with all other
// times: the stall of a holder is, and what holds lives on in its process meanwhile, as a mutex does.
func (c *Combination) idle() time.Duration { return time.Duration(c.Stretched) * time.Second }

// short is how many times longer a scenario must be for the lock's program to keep its leases; 1 = it is long enough.
func (c *Combination) short() int {
	p, ttl := c.Lock.Program, c.Plan.Workload.TTL
	if p == nil || c.Scenario.Name == "" || p.Least <= ttl {
		return 1
	}
	return int((p.Least + ttl - 1) / ttl)
}
