package harness

import (
	"context"
	"fmt"
	"slices"

	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// combinations are the locks of the plan, each on the topologies that it fits.
func (c *check) combinations() (all []Combination) {
	for _, topology := range c.plan.Topologies {
		for _, lock := range c.plan.Locks {
			if lock.Open == nil && lock.Program == nil {
				lock = locks.Auto(c.plan.Known.Locks, topology)
			}
			x := Combination{Topology: topology, Lock: lock, Plan: c.plan.phased()}
			switch {
			case lock.Fits(topology):
				all = append(all, x)
			case c.everywhere(), c.elsewhere(lock):
				c.without = append(c.without, fmt.Sprintf("%s: without %s, which lives elsewhere", topology.Name, lock.Name))
			default:
				c.mistake("%s", c.misfit(x))
			}
		}
	}
	return all
}

// everywhere tells whether the plan takes every topology there is: then those that do not fit a lock are left out.
func (c *check) everywhere() bool { return len(c.plan.Topologies) == len(topologies.All) }

// elsewhere tells whether a lock is a client of other servers, which another topology of the plan has: the plan compares them.
func (c *check) elsewhere(lock locks.Spec) bool {
	fits, others := false, false
	for _, t := range c.plan.Topologies {
		fits, others = fits || lock.Fits(t), others || lock.Engine != t.Can().Engine
	}
	return fits && others
}

// engines finds out whether this machine has the servers that are not Redis, and whether the counter can be on them.
func (c *check) engines(ctx context.Context) {
	for _, t := range c.plan.Topologies {
		if spec := c.plan.Counter; spec.Place == workload.OnTopology && !t.Can().Ask() {
			c.mistake("--counter %s is on the servers of the lock, and needs Redis there: topology %s has %s", spec.Name, t.Name, t.Can().Engine)
		}
	}
	for _, t := range append(slices.Clone(c.plan.Topologies), c.plan.Counter.Server) {
		if err := t.Installed(ctx); err != nil && !slices.Contains(c.problems, err.Error()) {
			c.problems = append(c.problems, err.Error())
		}
	}
}
