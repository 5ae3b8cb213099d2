package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/attach"
	"hammerlock/internal/crew"
	"hammerlock/internal/driver"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// The method drivers starts the program of each lock once, to read its hello message. The message says what the lock
// claims.
func (c *check) drivers(ctx context.Context) {
	p := c.plan
	for _, name := range p.DriverEnv {
		switch only, _, valued := strings.Cut(name, "="); {
		case valued:
			c.mistake("driver-env", "%s: a name alone, as in --driver-env %s: its value comes from the environment",
				name, only)
		case p.Getenv == nil || p.Getenv(name) == "":
			c.mistake("driver-env", "%s: it is not set in the environment", name)
		}
	}
	if !slices.ContainsFunc(p.Locks, func(s locks.Spec) bool { return s.Program != nil }) {
		return
	}
	asked := p.Locks
	p.Locks = nil
	for _, lock := range asked {
		if lock.Program != nil {
			args := p.Attach.Secrets.Whole("lock", lock.Program.Args)
			spec, err := driver.Greet(ctx, args, driver.Environment(p.Getenv, p.DriverEnv))
			if err != nil {
				c.problems = append(c.problems, fmt.Sprintf("--lock exec:%s: %v", driver.Join(lock.Program.Args), err))
				continue
			}
			lock = spec
			lock.Doc = attach.Clean(lock.Doc)
			c.where(lock)
		}
		p.Locks = append(p.Locks, lock)
	}
}

// The method where replaces default topologies if the lock's program runs on none of them. The replacement is the
// first topology that the program names. Topologies that the user chose stay.
func (c *check) where(lock locks.Spec) {
	p := c.plan
	if !p.Preset || slices.ContainsFunc(p.Topologies, lock.Fits) {
		return
	}
	if t, ok := topologies.Find(lock.Program.On[0]); ok {
		p.Topologies = []topologies.Spec{t}
	}
}

// misfit returns the error for a lock that cannot run on a topology. The error suggests another topology for a lock in
// a program, and another lock otherwise.
func (c *check) misfit(x Combination) human.Mistake {
	if p := x.Lock.Program; p != nil {
		return human.Wrong("lock", "%s runs on %v, not on %s, as its program says: use --topology %s", x.Lock.Name,
			p.On, x.Topology.Name, p.On[0])
	}
	if l, t := x.Lock.Engine, x.Topology.Can().Engine; l != t {
		return human.Wrong("lock", "%s is a client of %s, topology %s has %s: use --lock %s", x.Lock.Name,
			cmp.Or(l, "Redis"),
			x.Topology.Name, cmp.Or(t, "Redis"), locks.Auto(c.plan.Known.Locks, x.Topology).Name)
	}
	return human.Wrong("lock", "%s lives on one site, topology %s has %d: use --lock %s", x.Lock.Name, x.Topology.Name,
		x.Topology.Sites, locks.Auto(c.plan.Known.Locks, x.Topology).Name)
}

// The method driven copies the measurements of the lock's program into the record of the run.
func (x *Run) driven(d *crew.Driven) {
	p := x.combo.Lock.Program
	if p == nil {
		return
	}
	r := &results.Driver{Command: attach.Clean(driver.Join(p.Args)), Version: p.Version, Protocol: driver.Protocol}
	if d != nil {
		slices.Sort(d.Pings)
		r.Pings, r.Noise, r.Sample, r.Failures = int64(len(d.Pings)), d.Noise, d.Sample, d.Failures
		r.ClockUnread, r.Late, r.LateBy = d.ClockUnread, d.Late, int64(d.LateBy)
	}
	if n := r.Pings; n > 0 {
		r.P50, r.P99, r.Max = int64(d.Pings[(n-1)/2]), int64(d.Pings[(99*n+99)/100-1]), int64(d.Pings[n-1])
	}
	x.run.Driver = r
}
