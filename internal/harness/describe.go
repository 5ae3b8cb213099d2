package harness

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hammerlock/explore"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// serverRound is the possible error of times that servers report. Servers round to milliseconds, and read their clock
// only once for each command.
const serverRound = 2 * time.Millisecond

// The database and user of clients. They are not the defaults, so that a lock fails if it forgets to select them
// after a reconnect.
const database, user = 3, "app"

// deployment returns what to start for a combination. It adds proxies, clocks and append-only files only if a planned
// fault needs them, because they distort measurements.
func (j *Job) deployment(c Combination) deployment.Spec {
	var needs faults.Needs
	for _, step := range c.Steps {
		needs = needs.Or(step.Fault.Needs)
	}
	p := &c.Plan
	s := deployment.Spec{
		Service: p.Service, Program: p.programSpec(),
		Topology: c.Topology, Counter: p.Counter, Processes: p.Processes, Crew: p.Fleet.Crew,
		Options: topologies.Options{Server: c.server, Profile: p.Profile, Links: needs.Links, Clock: needs.Clock,
			Power:   needs.Power,
			Durable: p.Durable, MinReplicas: p.MinReplicas},
		Orders: crew.Orders{
			Shape: p.Workload, Lock: c.Lock, Judged: p.Verify, From: p.Warmup, To: p.Warmup + p.Duration,
			Retries: p.LibraryRetries, Server: c.server, Steered: j.Watched && p.steerable(), Before: p.WorkerArgs,
		},
	}
	// these defaults are kept for a program under test, which may read only $REDIS_NODES, and for attached servers
	if !c.Lock.Defaults && !p.Attach.Asked() && c.Topology.Can().Ask() && p.Program == nil {
		s.Options.Database, s.Options.User = database, user
	}
	s.Orders.Shape.End, s.Orders.Patience = p.Warmup+p.Duration, c.patience()
	if needs.Power {
		s.Options.Durable = cmp.Or(p.Durable, topologies.SyncEverySecond)
	}
	return s
}

// patience returns how long a call of the lock may stay open at the end of a run, after all faults are healed. Any
// call that returns at all does so earlier. So a call that is still open is the lock's mistake.
func (c *Combination) patience() time.Duration {
	w := &c.Plan.Workload
	lease := max(w.TTL, w.Extend) + c.Lock.Lingers(w.TTL)
	if w.TwoTTLs {
		lease += w.TTL
	}
	return w.Wait + 2*lease + c.Topology.Recovery + 3*time.Second
}

// recorded returns the number of workers that appear in the history. A worker may count more than once: see
// workload.Lanes.
func (c *Combination) recorded() int { return c.Plan.Workload.Workers * workload.Lanes(&c.Lock.Claims) }

func (c *Combination) scene() faults.Scene {
	p := &c.Plan
	s := faults.Scene{
		Topology: c.Topology.Name, Sites: c.Topology.Sites, Nodes: c.Topology.Nodes, TTL: p.Workload.TTL,
		Names: c.Topology.NodeNames(), Recovery: c.Topology.Recovery, Claims: c.Lock.Claims,
		Can: c.Topology.Can(), Session: c.Lock.Session,
		Waits: c.Lock.Waits, Outlives: c.Lock.Outlives, Shared: c.Lock.Shared, Processes: p.Processes,
		HeedDeadline: p.Workload.HeedDeadline,
		Programs:     p.programs(), AllowLost: p.Fleet.AllowLost, Silence: p.Fleet.Silence, Agents: p.Fleet.Count,
	}
	p.source(&s)
	s.Program = c.Lock.Program != nil
	s.Clocked = s.Program && topologies.NoClientClock() == ""
	// A server that syncs its file every second can forget acknowledged writes when it dies. A replica that is
	// promoted has a file of its own, so it can lack writes, too.
	s.Keeps = !s.Session && (s.Can.Keep || p.Durable == topologies.SyncAlways && c.Topology.Copies == 0)
	return s
}

// describe returns the record of a run, with all fields that are known before the measurement.
func (x *Run) describe(started time.Time) *results.Run {
	plan, w, c := &x.combo.Plan, &x.combo.Plan.Workload, &x.combo
	lock := strings.NewReplacer(":", "-", "/", "-").Replace(c.Lock.Name)
	name := []string{started.UTC().Format("20060102-150405"), c.Topology.Name, lock, strings.ToLower(rand.Text()[:6])}
	if plan.Program != nil {
		name = slices.Delete(name, 2, 3) // remove the lock, since a pattern of keys may not be a valid file name
	}
	r := &results.Run{
		Name: strings.Join(name, "-"), Started: started.UTC(),
		Topology: c.Topology.Name, Lock: c.Lock.Name, Scenario: c.Scenario.Name, Class: c.Scenario.Class,
		Strains: c.Scenario.Doc, Recorded: plan.Verify, Counter: plan.Counter.Name, Faults: []string{},
		Config: results.Config{
			Workers: w.Workers, Processes: plan.Processes, Keys: w.Keys, Popularity: string(w.Popularity), Rate: w.Rate,
			Spread: string(w.Arrivals), Seed: w.Seed, TTL: int64(w.TTL), Hold: int64(w.Hold), Term: int64(w.Term),
			Think: int64(w.Think),
			Wait:  int64(w.Wait), Retry: int64(w.Retry), Warmup: int64(plan.Warmup), Duration: int64(plan.Duration),
		},
		Settings: x.deployment.Topology.Settings, Client: x.deployment.Topology.ClientSettings(),
		Environment: environment(),
	}
	if x.job.Command != nil {
		r.Command = x.job.Command(*c)
	}
	for _, step := range c.Steps {
		r.Faults = append(r.Faults, step.String())
	}
	if s := plan.Service; s != nil {
		r.Service, r.Burst = s.Visit.String(), s.Burst
	}
	r.Label = label(c.server)
	return r
}

// header returns the header of the history: the facts about the run that a judge needs.
func (x *Run) header() history.Header {
	plan, w, c, run := &x.combo.Plan, &x.combo.Plan.Workload, &x.combo, x.run
	h := history.Header{
		Name: run.Name, Started: run.Started, Command: run.Command, Topology: run.Topology, Lock: run.Lock,
		Sites: c.Topology.Sites, Nodes: len(x.deployment.Topology.Nodes),
		Bounds: history.Bounds{
			Agreement: history.Agreement{Slack: x.session.Slack, Doubts: x.session.Doubts}, Rate: x.session.Rate,
			Round: serverRound, Recovery: c.Topology.Recovery, Gap: x.gap(),
		},
	}
	for _, step := range c.Steps {
		h.Faults = append(h.Faults, step.Injection(c.scene()))
	}
	if source := x.deployment.Program; source != nil {
		source.Describe(&h)
		return h
	}
	h.Workers, h.Processes, h.Keys, h.Retry, h.Wait = c.recorded(), plan.Fleet.judged(plan.Processes), w.Keys, w.Retry,
		w.Wait
	h.Heeds = w.HeedDeadline
	h.Fenced, h.Service, h.Session, h.Claims = plan.Counter.Fenced, c.Topology.Can().Lock, c.Lock.Session, c.Lock.Claims
	h.ServerErrors = !c.Topology.Can().Own || c.server.Embedded()
	h.Bounds.Linger, h.Bounds.Idle = c.Lock.Lingers(w.TTL), c.idle()
	if h.Workers > w.Workers {
		h.Callers = w.Workers
	}
	if c.Scenario.Name != "" {
		h.NotAbout = c.Scenario.NotAbout()
	}
	if plan.Counter.Place == workload.OnTopology {
		h.Counter = history.CounterOnTopology
	}
	return h
}

func (x *Run) fill(r *crew.Report, c costs) {
	for _, due := range r.Unfinished {
		x.meter.NeverBegun(due)
	}
	left := int64(len(r.Unfinished))
	x.run.Arrivals = results.Arrivals{Due: r.Begun + r.Skipped + left, Begun: r.Begun, Skipped: r.Skipped,
		Unfinished: left}
	x.run.Said = r.Said
	load := r.Load
	load.OpenLoop, load.Stalls = x.combo.Plan.Workload.Open(), load.Stalls+x.stalls
	x.run.Roles = x.watch.Roles()
	x.meter.Summarize(x.run, load)
	_, spans := x.meter.SoFar(history.Forever)
	x.run.Phases = x.combo.Plan.measuredPhases(spans)
	for i := range x.run.Phases {
		p := &x.run.Phases[i]
		finished := math.Round(p.Throughput * time.Duration(p.Measured).Seconds())
		p.Cost = share(c.phases[i], finished, 0, locks.OneSite)
	}
	if x.run.Unseen() {
		x.run.Label = strings.Join(x.incidents, "; ")
	}
	x.driven(r.Driver)
	x.run.Fleet = r.Fleet
	if x.stream != nil {
		x.run.Stream = x.stream.Sum()
	}
	trips := 0.0
	for _, t := range r.RoundTrips {
		if visits := x.meter.Between(t.From, t.To); visits > 0 {
			trips += float64(t.Count) / visits // divide by all visits: each process counts its own round trips only
		}
	}
	x.run.Cost = share(c.whole, x.meter.Between(c.from, c.to), trips, x.combo.Lock.Sites)
}

// share divides the servers' work by the number of visits. The argument roundTrips is divided already. Costs stay nil
// if they are unknown: a lock that sends nothing through the suite's clients has unknown round trips.
func share(c deployment.Cost, visits, roundTrips float64, on locks.Sites) results.Cost {
	if visits == 0 {
		return results.Cost{}
	}
	of := func(x float64) *float64 {
		x /= visits
		return &x
	}
	var r results.Cost
	if roundTrips > 0 || on == locks.NoSite {
		r.RoundTrips = &roundTrips
	}
	if c.Known && (c.Commands > 0 || on == locks.NoSite) { // other locks need commands: 0 = not seen
		r.Commands, r.ServerCPU = of(float64(c.Commands)), of(float64(c.CPU))
	}
	return r
}

// Explored returns the record of an exploration, which has no measurements. An exploration runs a lock with servers
// in memory, in virtual time.
func Explored(name, lock, command string, o *explore.Options) *results.Run {
	return &results.Run{Name: name, Started: time.Now(), Command: command, Explored: true,
		Topology: fmt.Sprintf("%d in memory", o.Sites), Lock: lock,
		Config: results.Config{Workers: o.Clients, Processes: o.Clients, Keys: 1, TTL: int64(o.TTL),
			Hold: int64(o.Hold)}}
}
