package harness

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// How often the servers are asked while somebody watches, and how often what things cost is measured.
const (
	surveyEvery = 400 * time.Millisecond
	costEvery   = 2 * time.Second
)

// picture is what is published of a run for somebody who watches it.
type picture struct {
	x      *execution
	viewer *measure.Viewer
	around atomic.Pointer[measure.Surroundings]
	roles  []measure.NodeState // as the viewer was told last
	visits atomic.Int64        // counted, within the measurement

	mu     sync.Mutex
	notes  map[history.ID]string
	faults []history.Injection
}

func newPicture(x *execution, h history.Header) *picture {
	p := &picture{x: x, notes: map[history.ID]string{}, faults: h.Faults}
	w := &x.job.Plan.Workload
	head := measure.Head{
		Topology: x.run.Topology, Lock: x.run.Lock, Faults: x.run.Faults, Label: x.run.Label, Command: x.run.Command,
		Workers: w.Workers, Keys: w.Keys, Rate: w.Rate, TTL: w.TTL,
	}
	p.viewer = measure.NewViewer(x.meter, head, h, p.fault)
	return p
}

// note keeps words for an operation until it is observed; any goroutine may call it.
func (p *picture) note(id history.ID, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes[id] = text
}

// inject keeps a fault that is in no plan; any goroutine may call it.
func (p *picture) inject(i history.Injection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults[:len(p.faults):len(p.faults)], i)
}

// fault is what a Fault injects, and its words.
func (p *picture) fault(op *history.Op) (history.Injection, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.notes, op.ID)
	return p.faults[op.Value], p.notes[op.ID]
}

func (p *picture) observe(op *history.Op) {
	p.x.meter.Observe(op)
	p.viewer.Observe(op)
}

// publish tells how the run goes: everything called before final was observed.
func (p *picture) publish(now, final time.Duration) {
	p.visits.Store(p.x.meter.Finished())
	p.viewer.UpTo(final)
	if p.x.breaker.Interactive() {
		p.viewer.Interactive()
	}
	p.viewer.Rate(p.x.job.Plan.Workload.Rate * p.x.session.Tempo.Speed())
	around := p.around.Load()
	if around != nil {
		p.viewer.Roles(now, p.roles, around.Nodes)
		p.roles = around.Nodes
	}
	snapshot := p.viewer.Snapshot(now, string(Running), around)
	p.x.tell(Event{Phase: Running, Live: snapshot.Live, Snapshot: snapshot})
}

// survey asks the servers until the run is over. What it sees is published; it waits for nobody.
func (p *picture) survey(ctx context.Context, done <-chan struct{}) {
	ticker := time.NewTicker(surveyEvery)
	defer ticker.Stop()
	d := p.x.deployment
	nodes := d.Survey()
	var probe crew.Probe
	var last time.Duration
	var before spent
	now := measure.Surroundings{}
	for {
		now.Nodes, now.Cuts = nodes.Look(ctx), d.Cuts()
		if at := p.x.session.Clock.Now(); at-last >= costEvery || last == 0 {
			last = at
			now.Usage, now.Measured = probe.Look(at)
			now.Usage.OpenLoop = p.x.job.Plan.Workload.Open()
			after := p.spent(ctx)
			now.Cost, before = p.since(after, before), after
		}
		around := now
		p.around.Store(&around)
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}

// spent is what the visits so far have cost.
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
	c := share(after.Since(before.Cost), after.visits-before.visits, after.trips-before.trips, p.x.combo.Lock.Sites)
	if !after.counted {
		c.RoundTrips = nil
	}
	return c
}
