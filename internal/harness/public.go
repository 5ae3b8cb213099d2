package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/measure"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// How often the servers are looked at while somebody watches, how long each may take to answer, and how often what
// things cost is measured.
const (
	visitEvery   = 400 * time.Millisecond
	visitTimeout = 350 * time.Millisecond
	costEvery    = 2 * time.Second
)

// noAnswer is the state of a node that runs and does not answer.
const noAnswer = "deaf"

// public is what is done for somebody who watches, and only then.
type public struct {
	stage  *stage
	clock  *history.Clock
	viewer *measure.Viewer
	around atomic.Pointer[measure.Surroundings]
	roles  []measure.NodeState // as the viewer was told last
	heard  []measure.NodeState // by node, the last answer of each that runs; of the looking goroutine
	visits atomic.Int64        // counted, within the measurement

	mu    sync.Mutex
	notes map[history.ID]string
}

func (s *stage) public(w *watch, h history.Header) *public {
	p := &public{stage: s, clock: w.clock, notes: map[history.ID]string{}}
	plan := &s.job.Plan.Workload
	head := measure.Head{
		Topology: s.combo.Topology.Name, Lock: s.combo.Lock.Name, Workers: plan.Workers, Keys: plan.Keys, Rate: plan.Rate,
		TTL: plan.TTL, Command: h.Command,
	}
	for _, step := range s.combo.Steps {
		head.Faults = append(head.Faults, step.String())
	}
	if s.job.server.Embedded() {
		head.Label = embeddedLabel
	}
	p.viewer = measure.NewViewer(w.meter, head, h, p.words)
	return p
}

// note keeps words for an operation, for the history and for who watches; any goroutine may call it.
func (w *watch) note(id history.ID, text string) {
	w.tape.note(id, text)
	if p := w.public; p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notes[id] = text
	}
}

func (p *public) words(id history.ID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.notes, id)
	return p.notes[id]
}

// event tells how the run goes: everything called before final was observed.
func (w *watch) event(now, final time.Duration) Event {
	p := w.public
	if p == nil {
		return Event{Phase: Running, Live: w.meter.Live(now)}
	}
	p.visits.Store(w.meter.Finished())
	p.viewer.UpTo(final)
	if w.breaker.meddled.Load() {
		p.viewer.Interactive()
	}
	p.viewer.Rate(w.stage.job.Plan.Workload.Rate * w.stage.crew.Tempo().Speed())
	around := p.around.Load()
	if around != nil {
		p.viewer.Roles(now, p.roles, around.Nodes)
		p.roles = around.Nodes
	}
	snapshot := p.viewer.Snapshot(now, string(Running), around)
	return Event{Phase: Running, Live: snapshot.Live, Snapshot: snapshot}
}

// look visits the servers until the run is over. What it sees is published; it waits for nobody.
func (p *public) look(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ticker := time.NewTicker(visitEvery)
	defer ticker.Stop()
	var probe crew.Probe
	var last time.Duration
	var before spent
	now := measure.Surroundings{}
	for {
		now.Nodes, now.Cuts = p.nodes(ctx), cuts(p.stage.topology.Network())
		if at := p.clock.Now(); at-last >= costEvery || last == 0 {
			last = at
			now.Usage, now.Measured = probe.Look(at)
			now.Usage.OpenLoop = p.stage.job.Plan.Workload.Open()
			after := p.spent(ctx)
			now.Cost, before = after.since(before, p.stage.combo.Lock.Sites), after
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
	cost
	trips, visits int64
	counted       bool // the round trips of all workers are known
}

func (p *public) spent(ctx context.Context) spent {
	s := spent{cost: p.stage.sample(ctx), visits: p.visits.Load()}
	if local, ok := p.stage.crew.(interface{ RoundTrips() int64 }); ok {
		s.trips, s.counted = local.RoundTrips(), true
	}
	return s
}

func (s spent) since(before spent, on locks.Sites) results.Cost {
	c := s.cost.since(before.cost).per(s.visits-before.visits, s.trips-before.trips, on)
	if !s.counted {
		c.RoundTrips = nil
	}
	return c
}

// nodes asks every server what it is, all at once.
func (p *public) nodes(ctx context.Context) []measure.NodeState {
	all := p.stage.topology.Nodes
	states := make([]measure.NodeState, len(all))
	offsets := make([]int64, len(all))
	masters := make([]string, len(all))
	var visits sync.WaitGroup
	for i, n := range all {
		visits.Go(func() { states[i], offsets[i], masters[i] = visit(ctx, n) })
	}
	visits.Wait()
	if p.heard == nil {
		p.heard = make([]measure.NodeState, len(all))
	}
	for i := range states {
		if late := states[i].State == noAnswer; late && p.heard[i].Name != "" {
			states[i], p.heard[i] = p.heard[i], measure.NodeState{} // once is no news
		} else if !late {
			p.heard[i] = states[i]
		}
	}
	for i := range states {
		of := slices.IndexFunc(all, func(n *topologies.Node) bool { return n.Addr() == masters[i] })
		if masters[i] == "" || of < 0 {
			continue
		}
		states[i].Of, states[i].Lag = all[of].Name, -1
		if offsets[of] > 0 && offsets[i] > 0 {
			states[i].Lag = max(offsets[of]-offsets[i], 0)
		}
	}
	return states
}

// visit asks one server.
func visit(ctx context.Context, n *topologies.Node) (s measure.NodeState, offset int64, master string) {
	s = measure.NodeState{Name: n.Name, Role: "?", Made: string(n.Role), State: n.State().String(), Lag: -1}
	if n.State() != topologies.Up {
		return s, 0, ""
	}
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	info, err := n.Info(ctx, "replication", "clients")
	if err != nil {
		s.State = noAnswer
		return s, 0, ""
	}
	s.Clients, _ = strconv.ParseInt(info["connected_clients"], 10, 64)
	switch {
	case n.Role == topologies.Watchman:
		s.Role = string(topologies.Watchman)
	case info["role"] == "slave":
		s.Role, s.Linked = string(topologies.Replica), info["master_link_status"] == "up"
		offset, _ = strconv.ParseInt(info["slave_repl_offset"], 10, 64)
		master = info["master_host"] + ":" + info["master_port"]
	default:
		s.Role = string(topologies.Primary)
		offset, _ = strconv.ParseInt(info["master_repl_offset"], 10, 64)
	}
	return s, offset, master
}

// cuts writes the rules of links that are in force.
func cuts(n *topologies.Network) (list []string) {
	names := func(all []topologies.Party) string {
		words := make([]string, len(all))
		for i, p := range all {
			words[i] = string(p)
		}
		return strings.Join(words, ",")
	}
	for _, r := range n.Rules() {
		arrow := "<->"
		if r.OneWay {
			arrow = "->"
		}
		list = append(list, fmt.Sprintf("%s %s%s%s", r.Effect, names(r.From), arrow, names(r.To)))
	}
	return list
}
