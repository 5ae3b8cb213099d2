package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/crew"
	"hammerlock/internal/driver"
	"hammerlock/locks"
	"hammerlock/results"
)

// drivers starts the programs that have locks, once, to hear what they say of themselves.
func (c *check) drivers(ctx context.Context) {
	p := c.plan
	for _, name := range p.DriverEnv {
		switch only, _, valued := strings.Cut(name, "="); {
		case valued:
			c.mistake("--driver-env %s: a name alone, as in --driver-env %s: its value comes from the environment", name, only)
		case p.Getenv == nil || p.Getenv(name) == "":
			c.mistake("--driver-env %s: it is not set in the environment", name)
		}
	}
	if !slices.ContainsFunc(p.Locks, func(s locks.Spec) bool { return s.Program != nil }) {
		return
	}
	asked := p.Locks
	p.Locks = nil
	for _, lock := range asked {
		if lock.Program != nil {
			spec, err := driver.Greet(ctx, lock.Program.Args, driver.Environment(p.Getenv, p.DriverEnv))
			if err != nil {
				c.problems = append(c.problems, fmt.Sprintf("--lock exec:%s: %v", driver.Join(lock.Program.Args), err))
				continue
			}
			lock = spec
		}
		p.Locks = append(p.Locks, lock)
	}
}

// misfit says why a lock cannot be run on a topology, and what can.
func (c *check) misfit(x Combination) string {
	if p := x.Lock.Program; p != nil {
		return fmt.Sprintf("--lock %s runs on %v, not on %s, as its program says: use --topology %s", x.Lock.Name, p.On, x.Topology.Name, p.On[0])
	}
	if l, t := x.Lock.Engine, x.Topology.Engine(); l != t {
		return fmt.Sprintf("--lock %s is a client of %s, topology %s has %s: use --lock %s", x.Lock.Name, cmp.Or(l, "Redis"),
			x.Topology.Name, cmp.Or(t, "Redis"), locks.Auto(c.plan.Known.Locks, x.Topology).Name)
	}
	return fmt.Sprintf("--lock %s lives on one site, topology %s has %d: use --lock %s", x.Lock.Name, x.Topology.Name,
		x.Topology.Sites, locks.Auto(c.plan.Known.Locks, x.Topology).Name)
}

// driven writes down what was seen of the program that has the lock.
func (x *execution) driven(d *crew.Driven) {
	p := x.combo.Lock.Program
	if p == nil {
		return
	}
	r := &results.Driver{Command: driver.Join(p.Args), Version: p.Version, Protocol: driver.Protocol}
	if d != nil {
		slices.Sort(d.Pings)
		r.Pings, r.Noise, r.Sample, r.Failures, r.Silent = int64(len(d.Pings)), d.Noise, d.Sample, d.Failures, d.Silent
	}
	if n := r.Pings; n > 0 {
		r.P50, r.P99, r.Max = int64(d.Pings[(n-1)/2]), int64(d.Pings[(99*n+99)/100-1]), int64(d.Pings[n-1])
	}
	x.run.Driver = r
}

// late adds the verdict on the program that has the lock, if there is one: before the others if it was late, because they
// cannot tell what it did from what the lock did.
func (x *execution) late(all []checker.Verdict) []checker.Verdict {
	d, lease := x.run.Driver, x.combo.Plan.Workload.TTL
	if d == nil {
		return all
	}
	v := checker.Verdict{Checker: "driver", Exposed: d.Pings, Summary: d.Text()}
	late := time.Duration(d.P99) > lease/lateShare
	if d.Pings > 0 && d.Silent == 0 && !late {
		v.Status = checker.Pass
	}
	if late {
		all = excuse(all)
		v.Summary = fmt.Sprintf("the driver, not the lock, was late: p99 is above a tenth of the lease (%s); give it more of the machine, or a longer --ttl; %s",
			lease/lateShare, d.Text())
	}
	if v.Status == checker.Pass {
		return append(all, v)
	}
	return append([]checker.Verdict{v}, all...)
}

// ofLateness are the causes that a driver can bring about by being late alone. What breaks exclusion so shows in what the
// lock guards, too.
var ofLateness = []string{"renewal-failure", "stuck", "lost-wakeup", "deadlock"}

// excuse makes inconclusive what a late driver may have brought about. A failure that it cannot explain stands, with all others.
func excuse(all []checker.Verdict) []checker.Verdict {
	follows := []string{"exclusion", "not-linearizable"}
	for i := range all {
		if v := &all[i]; v.Status == checker.Fail && !slices.Contains(ofLateness, v.Cause) && !slices.Contains(follows, v.Cause) {
			return all
		}
	}
	all = slices.Clone(all)
	for i := range all {
		if v := &all[i]; v.Status == checker.Fail {
			v.Status, v.Summary, v.Cause = checker.Inconclusive, "not held against the lock, whose driver was late: "+v.Cause+": "+v.Summary, ""
		}
	}
	return all
}

// lateShare is the part of a lease that a ping may take: a tenth.
const lateShare = 10
