package harness

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/attach"
	"hammerlock/internal/breaker"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/internal/program"
	"hammerlock/internal/recording"
	"hammerlock/internal/service"
	"hammerlock/internal/witness"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// onWire is the name of the topology in results of a program whose traffic was read.
const onWire = "wire"

// program checks a plan that watches a program. It has one run, or one for each scenario that fits programs.
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

// watched reports errors in the description of the program to watch.
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

// endpoints returns the addresses of running servers that the plan names.
func (c *check) endpoints() (all []topologies.Access) {
	// the suite writes no keys in this run, so any prefix will do
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

// scenes returns the runs of a program: one with the plan's faults, or one for each scenario whose faults can be
// injected.
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

// beside returns a run that watches a service's programs while the service is visited; nil if there is none.
func (c *check) beside(ctx context.Context, s *service.Spec) *Combination {
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

// programSpec is the program to watch; nil if there is none.
func (p *Plan) programSpec() *program.Spec {
	if p.Program == nil {
		return nil
	}
	w := *p.Program
	w.Duration = p.Duration
	return &w
}

// source sets in the scene what depends on the kind of load.
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

// spec says what must be started for the run.
func (x *Run) spec() deployment.Spec {
	s := x.job.deployment(x.combo)
	if s.Program != nil {
		s.Program.Say = func(line string) { x.tell(Event{Stage: Starting, Said: line}) }
	}
	return s
}

// beginProgram prepares the recorder, the viewer and the fault injection of a program's run.
func (x *Run) beginProgram() (err error) {
	source := x.deployment.Program
	if x.session, err = source.Begin(nil); err != nil {
		return err
	}
	x.meter = measure.NewMeter(measure.Options{Workers: recording.ReadWorkers, Keys: recording.ReadKeys,
		To: history.Forever})
	o := recording.Options{Clock: x.session.Clock, Reader: source, File: x.folder.Path(results.HistoryFile),
		Header: x.programHeader(), Observe: x.meter.Observe, Tell: func(now, _ time.Duration) {
			live := x.meter.Live(now)
			live.Done = source.Grants()
			live.Visits.Done = live.Done
			x.tell(Event{Stage: Running, Live: live})
		}}
	b := breaker.Options{Steps: x.combo.Steps, Scene: x.combo.scene(), Shape: &x.combo.Plan.Workload}
	if x.job.Watched {
		h := o.Header
		h.Workers, h.Keys = recording.ReadWorkers, recording.ReadKeys
		x.picture = newPicture(x, h)
		o.Observe, o.Tell, b.Extra = x.picture.observe, x.picture.publish, keyPlaces
	}
	if err = source.Record(x.folder.Path("")); err != nil {
		return err
	}
	if x.record, err = recording.New(o); err != nil {
		return err
	}
	x.breaker = breaker.New(x.deployment, x.record, x.session, b)
	return nil
}

// programHeader returns what a judge must know about a program's run, apart from what is known only at its end.
func (x *Run) programHeader() history.Header {
	source, run := x.deployment.Program, x.run
	h := history.Header{Name: run.Name, Started: run.Started, Command: run.Command, Topology: run.Topology,
		Lock: run.Lock, Sites: source.Sites(), Nodes: source.Servers(),
		Bounds:   history.Bounds{Rate: witness.Rate, Round: witness.Round, Recovery: x.combo.Topology.Recovery},
		NotAbout: []string{history.Liveness, history.Fairness, history.Updates}}
	for _, step := range x.combo.Steps {
		h.Faults = append(h.Faults, step.Injection(x.combo.scene()))
	}
	return h
}

// workProgram lets the program work and injects the planned faults.
func (x *Run) workProgram(ctx, stop context.Context) (report crew.Report, err error) {
	done := make(chan struct{})
	var surveyed chan struct{}
	x.record.Start()
	cut := x.cutting(done)
	ending, over := context.WithCancel(stop)
	defer over()
	if x.picture != nil {
		surveyed = make(chan struct{})
		go func() {
			defer close(surveyed)
			x.picture.survey(context.WithoutCancel(ctx), done)
		}()
		x.tell(Event{Stage: Running, Controls: x.controls(ctx, ending)})
	}
	x.breaker.Start(ctx, ending)
	report, err = x.deployment.Crew.Run(ctx, stop)
	over()
	err = errors.Join(err, x.breaker.Wait())
	close(done)
	if surveyed != nil {
		<-surveyed
	}
	cut.Wait()
	x.record.Stop()
	x.record.Flush()
	return report, err
}

// endless tells whether the run goes on until a user ends it. Such an end is not early.
func (x *Run) endless() bool {
	return x.deployment.Program != nil && x.combo.Plan.Program.Command == ""
}

// besides starts to watch a program while a service is visited, until finish is called.
func (j *Job) besides(ctx, stop context.Context, number int) (finish func() error, err error) {
	c := &j.Combinations[number]
	if c.beside == nil {
		return func() error { return nil }, nil
	}
	y := &Run{job: j, combo: *c.beside, since: time.Now(), tell: func(e Event) {
		j.telling.Lock()
		defer j.telling.Unlock()
		if e.Combination, e.Number, e.Of = *c, number+1, len(j.Combinations); e.Said != "" && j.Progress != nil {
			j.Progress(e)
		}
		if e.Stage == Saved && j.Kept != nil {
			j.Kept(e.Folder)
		}
	}}
	spec := y.spec()
	if y.deployment, err = spec.Up(stop); err != nil {
		return nil, err
	}
	c.Plan.Service.Env = y.deployment.Program.Variables()
	var run *results.Run
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		run, failed = y.Do(ctx, stop)
	}()
	return func() error {
		y.deployment.Program.Finish()
		<-done
		if run != nil {
			j.beside(number, *run)
		}
		return errors.Join(failed, y.Close())
	}, nil
}
