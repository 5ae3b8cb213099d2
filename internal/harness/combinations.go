package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"hammerlock/faults"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// combinations returns all pairs of a topology of the plan and a lock of the plan that can run on it.
func (c *check) combinations() (all []Combination) {
	for _, topology := range c.plan.Topologies {
		if wrong := c.unsettable(topology); wrong.Text != "" && c.everywhere() {
			c.without = append(c.without, topology.Name+" is left out: "+wrong.Text)
			continue
		} else if wrong.Text != "" {
			c.mistakes.Add(wrong)
		}
		for _, lock := range c.plan.Locks {
			if lock.Open == nil && lock.Program == nil {
				lock = locks.Auto(c.plan.Known.Locks, topology)
			}
			x := Combination{Topology: topology, Lock: lock, Plan: c.plan.phased()}
			switch {
			case lock.Fits(topology):
				all = append(all, x)
			case c.everywhere(), c.elsewhere(lock):
				c.without = append(c.without,
					fmt.Sprintf("%s: without %s, which lives elsewhere", topology.Name, lock.Name))
			default:
				c.mistakes.Add(c.misfit(x))
			}
		}
	}
	return all
}

// unsettable returns the reason why servers of a topology do not support the settings of the plan. It returns the
// zero Mistake if they do.
func (c *check) unsettable(t topologies.Spec) human.Mistake {
	p, can := c.plan, t.Can()
	switch {
	case p.MinReplicas == 0 && p.Durable == "":
		return human.Mistake{}
	case !can.Own:
		return human.Wrong("min-replicas", "and --aof set servers that are started; with --addr nothing is started")
	case !can.Ask():
		return human.Wrong("min-replicas", "and --aof are settings of Redis, and topology %s has %s", t.Name,
			can.Engine)
	case p.MinReplicas > 0 && t.Copies == 0:
		return human.Wrong("min-replicas", "%d: topology %s has no replicas; replica, sentinel and cluster have",
			p.MinReplicas, t.Name)
	case p.MinReplicas > t.Copies:
		return human.Wrong("min-replicas", "%d: a primary of topology %s has no more than %d", p.MinReplicas, t.Name,
			t.Copies)
	}
	return human.Mistake{}
}

// everywhere tells whether the plan has all topologies. In this case, topologies that do not suit a lock are skipped
// without an error.
func (c *check) everywhere() bool { return len(c.plan.Topologies) == len(topologies.All) }

// The method elsewhere tells whether another topology of the plan suits the lock, while this one has another kind of
// server. The plan then compares kinds of servers, so skipping a pair is no error.
func (c *check) elsewhere(lock locks.Spec) bool {
	fits, others := false, false
	for _, t := range c.plan.Topologies {
		fits, others = fits || lock.Fits(t), others || lock.Engine != t.Can().Engine
	}
	return fits && others
}

// The method strained replaces each combination by several, one for each scenario that applies to it.
func (c *check) strained(all []Combination) (strained []Combination) {
	if len(c.plan.Scenarios) == 0 {
		return all
	}
	for _, x := range all {
		if c.plan.Counter.Fits(x.Lock, 1) != "" {
			strained = append(strained, x) // unchanged, so that its mistake is reported
			continue
		}
		here := x.Topology
		for _, s := range c.plan.Scenarios {
			x.Topology, x.Scenario, x.Plan = here, s, c.plan.under(s, x.Lock, here)
			if s.Sites > 0 && here.Sites > 1 && here.Can().Own {
				x.Topology = topologies.Independent(s.Sites)
			}
			out := s.Out(x.scene())
			if why := x.Plan.Counter.Fits(x.Lock, x.Plan.Processes); out == "" {
				out = why
			}
			if x.short() > longest {
				out = cmp.Or(out, fmt.Sprintf("its leases are of %s, too short for the lock's program",
					x.Plan.Workload.TTL))
			}
			if out == "" {
				strained = append(strained, x)
			} else {
				c.not = append(c.not, x.notRun(out))
			}
		}
	}
	if len(strained) == 0 {
		for _, n := range c.not {
			c.mistake("scenario", "%s: nothing for %s on %s: %s", n.Scenario, n.Lock, n.Topology, n.Why)
		}
	}
	return strained
}

// perPermit is the number of workers for each permit of a semaphore. It is more than one, so that workers must wait.
const perPermit = 4

func (p Plan) under(s scenarios.Scenario, lock locks.Spec, on topologies.Spec) Plan {
	p.Workload, p.Faults, p.Warmup = s.Load(p.Workload.Seed, lock.Claims), s.Planned(faults.OfWorkers), 0
	p.Duration = s.Lasts(on.Recovery+lock.Lingers(p.Workload.TTL), lock.Claims.Renews)
	if p.Processes = p.Fleet.processes(max(s.Processes, 1)); s.Counter.Name != "" &&
		!(s.Counter.Fenced && p.Counter.Fenced) {
		p.Counter = s.Counter
	}
	if w, n := &p.Workload, lock.Claims.Permits; w.Permits == 1 && w.Workers < perPermit*n*w.Keys {
		w.Permits = n // some visits ask for so many permits that others must wait
	}
	return p
}

func (c *Combination) notRun(why string) results.NotRun {
	return results.NotRun{Topology: c.Topology.Name, Lock: c.Lock.Name, Scenario: c.Scenario.Name, Why: why}
}

// The method engines checks that this machine has the servers of other kinds than Redis, and that the counter works
// on them.
func (c *check) engines(ctx context.Context) {
	for _, t := range c.plan.Topologies {
		if spec := c.plan.Counter; spec.Place == workload.OnTopology && !t.Can().Ask() {
			c.mistake("counter", "%s is on the servers of the lock, and needs Redis there: topology %s has %s",
				spec.Name, t.Name, t.Can().Engine)
		}
	}
	for _, t := range append(slices.Clone(c.plan.Topologies), c.plan.Counter.Server) {
		if err := t.Installed(ctx); err != nil && !slices.Contains(c.problems, err.Error()) {
			c.problems = append(c.problems, err.Error())
		}
	}
}
