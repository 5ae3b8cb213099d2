package harness

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/attach"
	"hammerlock/internal/human"
	"hammerlock/internal/program"
	"hammerlock/internal/service"
	"hammerlock/internal/witness"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// onWire is the name of the topology in results of a watched program, whose Redis traffic was read.
const onWire = "wire"

// program checks a plan that watches a program. It returns one combination, or one for each scenario that is possible
// with programs.
func (c *check) program(ctx context.Context) (all []Combination) {
	p, w := c.plan, c.plan.Program
	given, own := p.Attach.Asked(), len(p.Topologies) > 0
	x := Combination{Topology: topologies.Outside, Lock: locks.Spec{Name: strings.Join(w.Locks, ",")}, Plan: *p}
	switch {
	case given == own:
		c.mistake("addr", "names the server, or --topology starts one: give one of them")
	case given && p.RedisServer != "":
		c.mistake("redis-server", "names what to start; with --addr nothing is started")
	}
	if given {
		w.Endpoints = c.endpoints()
	}
	if own {
		x.Topology = p.Topologies[0]
	}
	c.watched(w)
	if own && w.Command == "" && !w.TapOnly && !w.Service && w.Listen == "" && p.Duration == 0 {
		c.mistake("", "a command is missing: the program to watch, behind --")
	}
	w.Own, w.Untapped = own, !p.Tap
	if x.Topology.Name = onWire; own && len(c.mistakes) == 0 {
		x.server = c.toStart(ctx)
	}
	x.Plan.Workload = workload.Shape{TTL: time.Second, Seed: 1}
	x.Plan.Counter, x.Plan.Processes, x.Plan.Warmup = workload.CounterSpec{Name: "none"}, 1, 0
	c.faults([]Combination{x})
	all = c.scenes(x)
	c.faults(all)
	return all
}

// watched reports mistakes in the description of the program to watch.
func (c *check) watched(w *program.Spec) {
	w.WholeEnv = c.plan.Attach.Secrets.Whole("env", w.Env)
	if len(w.Locks) == 0 {
		c.mistake("locks", "is missing: which keys are locks, as in --locks 'lock:*'")
	}
	breaks := len(c.plan.Scenarios) > 0 || !slices.Equal(c.plan.Faults, []string{faults.None})
	if w.TapOnly && (w.Command != "" || !c.plan.Tap || breaks || len(w.Data)+len(w.Env) > 0) {
		c.mistake("tap-only",
			"reads the replication stream and does nothing else: leave out the command, --tap off, --fault, "+
				"--scenario, --data and --env")
	}
	if len(c.plan.Scenarios) > 0 && (w.Command == "" || len(c.plan.Faults) > 0 && c.plan.Faults[0] != faults.None) {
		c.mistake("scenario",
			"runs the command once for each, with the scenario's faults: give a command, and no --fault")
	}
}

// endpoints returns the addresses of the attached servers, with their logins.
func (c *check) endpoints() (all []topologies.Access) {
	// a watch writes no keys of its own, so the prefix of such keys does not matter
	c.plan.Attach.Prefix = cmp.Or(c.plan.Attach.Prefix, topologies.DefaultPrefix)
	found, mistakes := c.plan.Attach.Resolve(false)
	c.mistakes.Add(mistakes...)
	for _, e := range found.Endpoints {
		user, password := e.Login.Parts()
		all = append(all, topologies.Access{Foreign: true, Addrs: []string{e.Addr}, User: user, Password: password,
			DB: e.DB, TLS: found.TLS})
	}
	return all
}

// scenes returns the combinations for a watched program: one with the plan's faults, or one for each scenario whose
// faults are possible.
func (c *check) scenes(x Combination) (all []Combination) {
	if len(c.plan.Scenarios) == 0 {
		return []Combination{x}
	}
	for _, s := range c.plan.Scenarios {
		w := *c.plan.Program
		w.Scenario = true
		x.Scenario, x.Plan.Program = s, &w
		x.Plan.Faults, x.Plan.Scenarios = s.Planned(faults.OnWire), []scenarios.Scenario{s}
		if out := s.Out(x.scene()); out != "" {
			c.without = append(c.without, s.Name+" is left out: "+out)
			continue
		}
		all = append(all, x)
	}
	if len(all) == 0 && len(c.mistakes) == 0 {
		c.mistake("scenario", "nothing is left: %s", strings.Join(c.without, "; "))
	}
	return all
}

// watch returns the combination that watches a service's programs while the service is visited. It returns nil if the
// service does not ask for a watch.
func (c *check) watch(ctx context.Context, s *service.Spec) *Combination {
	to := &s.Wire
	if to.To == "" {
		if len(to.Locks)+len(to.Data)+len(to.Env) > 0 {
			c.mistake("locks", ", --data and --env are about what --wire watches: give --wire")
		}
		return nil
	}
	if len(s.Serve) == 0 {
		c.mistake("wire", "watches what --serve starts: give --serve")
	}
	p := *c.plan
	p.Service, p.Scenarios, p.Faults, p.Tap, p.Duration = nil, nil, []string{faults.None}, true, 0
	p.Topologies, p.Attach = nil, attach.Flags{Secrets: p.Attach.Secrets, Tell: p.Attach.Tell}
	known := c.plan.Known.Topologies
	i := slices.IndexFunc(known, func(t topologies.Spec) bool { return t.Name == to.To })
	if i < 0 && !strings.ContainsAny(to.To, ".:") {
		names := human.Names(known, func(t topologies.Spec) string { return t.Name })
		c.mistake("wire", "%q: %s; or the address of a server, as in redis://%s:6379", to.To,
			human.Instead(to.To, names), to.To)
		return nil
	}
	if p.Attach.Addrs = strings.Split(to.To, ","); i >= 0 {
		p.Topologies, p.Attach.Addrs = known[i:i+1], nil
	}
	p.Program = &program.Spec{Options: witness.Options{Locks: to.Locks, Data: to.Data,
		Holder: witness.Holder{By: witness.Auto}}, Env: to.Env, Service: true}
	own := check{plan: &p}
	all := own.program(ctx)
	for _, m := range own.mistakes {
		c.mistake("wire", ": %s", m.Text)
	}
	c.problems = append(c.problems, own.problems...)
	return &all[0]
}

// programSpec returns a copy of the description of the program to watch; nil if the plan watches none.
func (p *Plan) programSpec() *program.Spec {
	if p.Program == nil {
		return nil
	}
	w := *p.Program
	w.Duration = p.Duration
	return &w
}

// source sets the fields of a scene that depend on who makes the load: workers, a service, or a program.
func (p *Plan) source(s *faults.Scene) {
	switch {
	case p.Service != nil:
		s.Source = faults.OfService
	case p.Program != nil:
		s.Source, s.Can.Lock, s.Can.Own = faults.OnWire, false, p.Program.Own
		if p.Program.Command != "" {
			s.Programs = 1
		}
	}
}

// endless tells whether the run lasts until a user ends it. Such an end is normal, not early.
func (x *Run) endless() bool {
	return x.deployment.Program != nil && x.combo.Plan.Program.Command == ""
}

// startWatch starts the watch that the plan wants beside the visits of a combination. The watch lasts until finish is
// called. Its argument begun is false if the visits never began; then the watch is not saved.
func (j *Job) startWatch(ctx, stop context.Context, number int) (finish func(begun bool) error, err error) {
	c := &j.Combinations[number]
	if c.watch == nil {
		return func(bool) error { return nil }, nil
	}
	own := &Job{Plan: c.watch.Plan, Combinations: []Combination{*c.watch}, Command: j.Command,
		Killed: func(dir string) { j.foundKilled([]string{dir}) },
		Progress: func(e Event) {
			if e.Combination, e.Number, e.Of = *c, number+1, len(j.Combinations); e.Said != "" {
				j.report(e)
			}
		},
		Kept: func(dir string) {
			j.telling.Lock()
			defer j.telling.Unlock()
			if j.Kept != nil {
				j.Kept(dir)
			}
		}}
	x, err := own.Prepare(stop)
	if err != nil {
		return nil, err
	}
	c.Plan.Service.Env = x.deployment.Program.Variables()
	var run *results.Run
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		run, failed = x.Do(ctx, stop)
	}()
	return func(begun bool) error {
		if begun {
			x.deployment.Program.Finish(nil)
		} else {
			x.deployment.Program.Finish(program.ErrUnused)
		}
		<-done
		if run != nil {
			j.keepWatched(number, *run)
		}
		if errors.Is(failed, program.ErrUnused) {
			failed = nil // no traffic was seen, because the visits did not begin; the caller knows why
		}
		return errors.Join(failed, x.Close())
	}, nil
}
