package harness

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
)

// measured returns the facts, besides operations, that the judge needs. They are about the lock's program, the
// programs of a service and, if the scenario asks for it, the work of the servers.
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

// costs is the work of the servers during the measurement, and in each of its phases.
type costs struct {
	whole    deployment.Cost
	from, to time.Duration // times of the first and the last reading
	phases   []deployment.Cost
}

// reading has the servers' counters at a given time, with the delay of the reading.
type reading struct {
	deployment.Cost
	at, late time.Duration
}

// costLate is the largest delay of a reading at the end of a phase, as a share of the phase's length. A later reading
// would include visits of the next phase.
const costLate = 0.1

// since returns the servers' work between two readings. It is unknown if either reading was too late for a phase of
// the given length.
func (r reading) since(before reading, lasted time.Duration) deployment.Cost {
	c := r.Cost.Since(before.Cost)
	c.Known = c.Known && float64(max(r.late, before.late)) <= costLate*float64(lasted)
	return c
}

// cost reads the servers' counters at the start and the end of each phase.
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
	c.whole, c.from, c.to = last.Since(begin.Cost), begin.at, last.at // here a late reading does no harm
	return c
}
