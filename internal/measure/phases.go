package measure

import (
	"cmp"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

type Span struct {
	Name     string
	From, To time.Duration
	Workers  int // number of workers that visit; the other workers pause
}

func newSpans(o Options) (all []*Meter) {
	for _, s := range o.Spans {
		part := o
		part.From, part.To, part.Spans, part.Log = s.From, s.To, nil, nil
		m := NewMeter(part)
		m.called, m.outages = s.Workers, nil
		all = append(all, m)
	}
	return all
}

// alwaysCalled returns the number of workers that visit in every measured phase. Shares of visits are only compared
// between these workers.
func (o *Options) alwaysCalled() int {
	n := cmp.Or(o.Callers, o.Workers)
	for _, s := range o.Spans {
		if s.From >= o.From {
			n = min(n, s.Workers)
		}
	}
	return n
}

// inSpans passes an operation to the meters of phases. A meter gets it if a part of the time from the due time of the
// visit to the return of the operation lies in the phase. Call inSpans before m itself observes the operation.
func (m *Meter) inSpans(op *history.Op) {
	for _, s := range m.spans {
		if op.Return < s.from || op.Due >= s.to && op.Call >= s.to {
			continue
		}
		if !s.begun {
			s.goOn(m)
		}
		s.Observe(op)
	}
}

// goOn prepares the meter of a phase. It copies the waits and holds in progress from the meter of the run.
func (s *Meter) goOn(m *Meter) {
	s.begun = true
	copy(s.pages, m.pages)
	copy(s.holds, m.holds)
	for i, w := range m.workers {
		w.finish, w.waits, w.waited, w.longest = 0, 0, 0, 0
		s.workers[i] = w
	}
}

// SoFar returns the measurements of the run and of each phase, as if the run ended at the given time.
func (m *Meter) SoFar(now time.Duration) (run results.Run, spans []results.Run) {
	to := m.to
	m.to = min(to, now)
	m.Summarize(&run, results.Usage{OpenLoop: m.open})
	run.Arrivals.Unfinished = m.left
	m.to = to
	for _, s := range m.spans {
		part, _ := s.SoFar(now)
		spans = append(spans, part)
	}
	return run, spans
}
