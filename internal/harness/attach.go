package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/attach"
	"hammerlock/internal/driver"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// attach connects to the existing deployment that the plan names, and makes it the plan's topology. It returns a nil
// topology if the plan names no deployment or has mistakes. Call done when the deployment is no longer needed.
func (c *check) attach(ctx context.Context) (t *topologies.Topology, done func()) {
	p, nothing := c.plan, func() {}
	if !p.Attach.Asked() {
		return nil, nothing
	}
	if p.RedisServer != "" {
		c.mistake("redis-server", "names what to start; with --addr nothing is started")
	}
	if p.Counter.Name == workload.RedisCounter.Name {
		p.Counter, _ = workload.FindCounter("sqlite") // it is a file, which worker processes can share
		c.counted = "in " + p.Counter.Name + " on this machine"
	}
	if p.Counter.Place == workload.OwnServer {
		c.mistake("counter", "%s starts a server; with --addr nothing is started: use %s", p.Counter.Name,
			strings.Join(c.countersBut(func(s workload.CounterSpec) bool { return s.Place == workload.OwnServer }),
				", "))
	}
	if len(p.Topologies) == 0 { // a mistake in --topology was already reported
		return nil, nothing
	}
	kind := p.Topologies[0]
	switch {
	case c.everywhere():
		kind = topologies.All[0]
	case len(p.Topologies) > 1:
		c.mistake("addr", "is one deployment: --topology says what it is")
	}
	if single := topologies.All[0].Name; kind.Name == single && len(p.Attach.Addrs) > 1 {
		c.mistake("addr", ": %d addresses, a single server has one: --topology says what they are: %s",
			len(p.Attach.Addrs),
			strings.Join(topologies.Names()[1:], ", "))
	}
	sentinel, _ := topologies.Find("sentinel")
	a, mistakes := p.Attach.Resolve(kind.Name == sentinel.Name)
	c.mistakes.Add(mistakes...)
	p.Topologies = []topologies.Spec{a.Of(kind)}
	if len(c.mistakes) > 0 {
		return nil, nothing
	}
	t, err := p.Topologies[0].Up(ctx, topologies.Options{})
	if err != nil {
		c.problems = append(c.problems, attach.Refused(err).Error())
		return nil, nothing
	}
	p.Topologies[0] = t.Spec
	return t, func() {
		if err := t.Close(); err != nil {
			c.problems = append(c.problems, err.Error())
		}
	}
}

// server returns the program of the servers under the locks: that of the attached servers, or the one to start.
func (c *check) server(ctx context.Context, attached *topologies.Topology) topologies.Server {
	switch {
	case attached != nil:
		return attached.Options.Server
	case c.plan.Attach.Asked():
		return topologies.Server{}
	}
	return c.toStart(ctx)
}

// preflight tries, before any load, whether an existing deployment permits all commands that the runs need. It prints
// or reports what it finds.
func (c *check) preflight(ctx context.Context, t *topologies.Topology, all []Combination) {
	if t == nil || len(c.mistakes) > 0 {
		return
	}
	if c.counted != "" {
		c.plan.Attach.Say("page views are counted " + c.counted + ": no server is started for them")
	}
	l := attach.Load{Counter: c.plan.Counter, Extends: c.plan.Workload.Extend > 0, Verify: c.plan.Verify}
	for _, x := range all {
		if slices.ContainsFunc(l.Locks, func(s locks.Spec) bool { return s.Name == x.Lock.Name }) {
			continue
		}
		lock, end, err := tried(ctx, t, x.Lock)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("lock %s: %v", x.Lock.Name, err))
			return
		}
		defer end()
		l.Locks = append(l.Locks, lock)
	}
	lines, err := attach.Preflight(ctx, t, l)
	for _, line := range lines {
		c.plan.Attach.Say(line)
	}
	if err != nil {
		c.problems = append(c.problems, strings.Split(err.Error(), "\n")...)
	}
}

// The function tried prepares a lock for the preflight. If the lock is in a separate program, it starts that program.
// The returned function ends the program. The preflight does not try renewals of the lease.
func tried(ctx context.Context, t *topologies.Topology, s locks.Spec) (locks.Spec, func(), error) {
	if s.Program == nil {
		return s, func() {}, nil
	}
	if !strings.HasPrefix(s.Program.Keys, locks.KeyPattern) {
		return s, nil, fmt.Errorf("its keys are called %s, and on servers of others all keys begin with --prefix",
			s.Program.Keys)
	}
	o := driver.Options{Topology: t.Spec.Name}
	for _, site := range t.Sites {
		o.Sites = append(o.Sites, site.Access())
	}
	p, err := driver.Start(ctx, s, o)
	if err != nil {
		return s, nil, err
	}
	s.Claims.Renews = false
	s.Open = func(locks.Env) (locks.Lock, error) { return p.Worker(nil), nil }
	return s, p.Close, nil
}
