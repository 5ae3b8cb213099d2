package harness

import (
	"context"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/internal/recording"
	"hammerlock/results"
)

// surveyEvery is the time between two queries of the servers' state. costEvery is the time between two readings of
// their work, such as CPU time.
const (
	surveyEvery = 400 * time.Millisecond
	costEvery   = 2 * time.Second
)

// picture collects the facts that a dashboard shows about a run.
type picture struct {
	x      *Run
	viewer *measure.Viewer
	around atomic.Pointer[measure.Surroundings]
	states []measure.NodeState // states of the nodes in the last snapshot
	visits atomic.Int64        // number of counted visits within the measurement
}

func newPicture(x *Run, h history.Header) *picture {
	p := &picture{x: x}
	w := &x.combo.Plan.Workload
	head := measure.Head{
		Topology: x.run.Topology, Lock: x.run.Lock, Scenario: x.run.Scenario, Faults: x.run.Faults, Label: x.run.Label,
		Command: x.run.Command,
		Workers: x.combo.recorded(), Keys: w.Keys, Rate: w.Rate, Phases: x.combo.Plan.spans(),
	}
	if source := x.deployment.Program; source != nil {
		h.Workers, h.Keys = recording.ReadWorkers, recording.ReadKeys
		head.Watched, head.Workers, head.Label = true, h.Workers, source.Places()
	}
	p.viewer = measure.NewViewer(x.meter, head, h, p.told)
	return p
}

// The method told returns the injected fault that the operation op records, and its description. The first result is
// zero if the operation does not record a fault.
func (p *picture) told(op *history.Op) (i history.Injection, words string) {
	if op.Kind == history.Fault {
		i = p.x.record.Fault(op.Value)
	}
	return i, p.x.record.Words(op.ID)
}

func (p *picture) observe(op *history.Op) {
	p.x.meter.Observe(op)
	p.viewer.Observe(op)
}

// publish sends a snapshot of the run at the given time. All operations that were called before the time final have
// arrived by then.
func (p *picture) publish(now, final time.Duration) {
	p.visits.Store(p.x.meter.Finished())
	p.viewer.UpTo(final)
	p.viewer.Known(final)
	if p.x.breaker.Interactive() {
		p.viewer.Interactive()
	}
	p.viewer.Rate(p.x.combo.Plan.Workload.Rate * p.x.session.Tempo.Speed())
	around := p.around.Load()
	if around != nil {
		p.viewer.States(now, p.states, around.Nodes)
		p.states = around.Nodes
	}
	snapshot := p.viewer.Snapshot(now, string(Running), around)
	snapshot.Live = p.x.live(snapshot.Live)
	if source := p.x.deployment.Program; source != nil {
		snapshot.Safety.Violations += int64(source.Found())
	}
	p.x.tell(Event{Stage: Running, Live: snapshot.Live, Snapshot: snapshot})
}

// survey asks the servers for their state repeatedly, until done is closed. It does not delay the workers.
func (p *picture) survey(ctx context.Context, done <-chan struct{}) {
	next := time.Tick(surveyEvery)
	d := p.x.deployment
	nodes := d.Survey()
	var probe crew.Probe
	var last time.Duration
	var before spent
	now := measure.Surroundings{}
	for {
		now.Nodes, now.Cuts = nodes.Look(ctx), d.Cuts()
		now.Agents = p.x.session.Remote()
		if at := p.x.session.Clock.Now(); at-last >= costEvery || last == 0 {
			last = at
			now.Usage, now.Measured = probe.Look(at)
			now.Usage.OpenLoop = p.x.combo.Plan.Workload.Open()
			after := p.spent(ctx)
			now.Cost, before = p.since(after, before), after
		}
		around := now
		p.around.Store(&around)
		select {
		case <-done:
			return
		case <-next:
		}
	}
}

// spent has the number of visits so far, and the work that servers and clients did for them.
type spent struct {
	deployment.Cost
	trips, visits int64
	counted       bool // the round trips of all workers are known
}

func (p *picture) spent(ctx context.Context) spent {
	s := spent{Cost: p.x.deployment.Cost(ctx), visits: p.visits.Load()}
	s.trips, s.counted = p.x.deployment.Crew.RoundTrips()
	return s
}

func (p *picture) since(after, before spent) results.Cost {
	visits := float64(after.visits - before.visits)
	c := share(after.Since(before.Cost), visits, float64(after.trips-before.trips)/visits, p.x.combo.Lock.Sites)
	if !after.counted {
		c.RoundTrips = nil
	}
	return c
}
