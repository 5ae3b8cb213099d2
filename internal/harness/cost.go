package harness

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
)

// measured returns facts that a judge needs besides the operations. They are about the lock's program and the
// programs of a service. If the scenario judges costs, they include the work of the servers.
func (x *Run) measured(r *crew.Report) *history.Measured {
	m := history.Measured{Driver: x.run.Driver.Measured(), Hung: r.Hung, Crashes: r.Crashes, Wear: r.Wear,
		Stream: x.run.Stream, Said: r.Said, Unseen: x.deployment.Unseen(),
		Elsewhere: x.deployment.Elsewhere()}
	if run := x.run; x.combo.Scenario.CostJudged {
		m.Cost = &history.Cost{Visits: run.Visits.Done, Commands: run.Cost.Commands, RoundTrips: run.Cost.RoundTrips,
			Duration: time.Duration(run.Duration)}
		if lasted, workers := m.Cost.Duration, x.combo.Plan.Workload.Workers; r.CPU > 0 && lasted > 0 &&
			x.combo.Plan.Processes > 1 {
			cpu := float64(r.CPU) / float64(lasted) / float64(workers)
			m.Cost.CPU = &cpu
		}
	}
	if x.combo.Topology.Can().Lock {
		m.Programs, m.Ended = x.combo.Plan.programs(), x.incidents
	}
	return &m
}

// costs has the work of the servers during the whole measurement, and during each phase.
type costs struct {
	whole    deployment.Cost
	from, to time.Duration // times of the first and the last reading
	phases   []deployment.Cost
}

// reading is one reading of the servers' counters. It has the time of the reading, and how late that was.
type reading struct {
	deployment.Cost
	at, late time.Duration
}

// costLate limits how late counters may be read at the end of a phase, as a share of the phase's length. A later
// reading would include too much work for visits of the next phase.
const costLate = 0.1

// The method since returns the servers' work between an earlier reading and the reading r. The result is marked as
// unknown if one of the readings was too late. The argument lasted is the length of the phase, which decides how late
// is too late.
func (r reading) since(before reading, lasted time.Duration) deployment.Cost {
	c := r.Cost.Since(before.Cost)
	c.Known = c.Known && float64(max(r.late, before.late)) <= costLate*float64(lasted)
	return c
}

// cost reads the servers' counters at the start and at the end of each phase. It returns the differences.
func (x *Run) cost(ctx context.Context, done <-chan struct{}) (c costs) {
	read := func(at time.Duration) reading {
		select {
		case <-time.After(at - x.session.Clock.Now()):
		case <-done: // the run ended early
			at = x.session.Clock.Now()
		}
		asked := x.session.Clock.Now()
		cost := x.deployment.Cost(ctx)
		answered := x.session.Clock.Now()
		return reading{cost, (asked + answered) / 2, answered - at}
	}
	p := &x.combo.Plan
	spans := p.spans()
	if spans == nil {
		spans = []measure.Span{{From: p.Warmup, To: p.Warmup + p.Duration}}
	}
	last := read(spans[0].From)
	begin := last
	for _, s := range spans {
		if s.From == p.Warmup {
			begin = last
		}
		now := read(s.To)
		c.phases, last = append(c.phases, now.since(last, s.To-s.From)), now
	}
	c.whole, c.from, c.to = last.Since(begin.Cost), begin.at, last.at // late readings do no harm here
	return c
}
