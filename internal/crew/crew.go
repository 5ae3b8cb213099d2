package crew

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/results"
	"hammerlock/workload"
)

// Crew is the workers of a run, wherever they live.
type Crew interface {
	// Begin starts the run's clock: its zero is now. Workers send on wake when their lanes fill up.
	Begin(wake chan<- struct{}) (*Session, error)
	// Run lets the workers work until their plan ends or stop is done; calls in progress are called off when ctx
	// is done.
	Run(ctx, stop context.Context) (Report, error)
	// RoundTrips is how many round trips the locks' clients have made so far; false if that is not known before the
	// end.
	RoundTrips() (int64, bool)
	Close() error
}

// Session is what a run has of its crew from the start of the clock on.
type Session struct {
	Clock     *history.Clock
	Lanes     []*history.Lane // all that the workers write
	Slack     time.Duration   // by how much the clocks of two lanes may differ
	Gate      Catcher         // of all workers
	Tempo     *workload.Tempo // of their open loop, if the orders let it be changed
	Processes []*Process      // nil if the workers live in this process

	// For workers on other machines; zero values if there are none.
	Feeds   []*history.Feed            // what they record
	Written func(upTo time.Duration)   // is told up to when the history was written, and Forever when all of it was
	Rate    float64                    // by which share their clocks may be stretched against those of servers
	Agents  func() []results.LiveAgent // how they do
	Doubts  []history.Doubt            // more of the clocks than Slack, by process
	// what the clocks were found to agree within, at the end; it replaces Slack and Doubts
	Proven func() history.Agreement
}

// Remote is how workers on other machines do; nil if there are none.
func (s *Session) Remote() []results.LiveAgent {
	if s.Agents == nil {
		return nil
	}
	return s.Agents()
}

// Catcher stops a worker at a point of its visit: a workload.Gate, or those of several machines.
type Catcher interface {
	Catch(ctx context.Context, p workload.Point, key int32) (*workload.Caught, error)
}

// Maker makes a crew; what it starts on this machine it starts with spawn.
type Maker func(ctx context.Context, o Orders, spawn Spawn) (Crew, error)

// Dead lists the lanes, by number, of processes that have ended early.
func (s *Session) Dead() (lanes []int) {
	for _, p := range s.Processes {
		if p.Dead() {
			lanes = append(lanes, p.Lanes...)
		}
	}
	return lanes
}

// laneSlots finds how much room each of n lanes needs: together they hold what is recorded between two visits of
// the reader, with plenty to spare.
func laneSlots(n int) int {
	slots := 1 << 13
	for slots > 1<<8 && slots*n > 1<<14 {
		slots /= 2
	}
	return slots
}

func newClock(ordered bool) *history.Clock {
	if ordered {
		return history.NewOrderedClock(0)
	}
	return history.NewClock(0)
}

// local is a crew in this process.
type local struct{ team *team }

// Local makes a crew in this process. The counter is one of its memory; nil if the orders say where it is.
func Local(ctx context.Context, o Orders, counter workload.Counter) (Crew, error) {
	t, err := o.open(ctx, counter)
	if err != nil {
		return nil, err
	}
	return &local{t}, nil
}

func (l *local) Begin(wake chan<- struct{}) (*Session, error) {
	o := &l.team.orders
	gate := workload.NewGate()
	s := &Session{Clock: newClock(o.Judged), Gate: gate, Tempo: workload.NewTempo()}
	count := o.lanes()
	for i := range count {
		s.Lanes = append(s.Lanes, history.NewLane(s.Clock, i, o.writer(i, o.Shape.Workers), laneSlots(count), wake))
	}
	own := s.Lanes
	if o.extras(0) > 0 {
		l.team.pings = history.NewLane(s.Clock, count, -1, laneSlots(count), wake)
		s.Lanes = append(s.Lanes, l.team.pings)
	}
	return s, l.team.begin(s.Clock, own, gate, s.Tempo)
}

func (l *local) Run(ctx, stop context.Context) (Report, error) {
	r := l.team.run(ctx, stop)
	return r, r.err()
}

func (l *local) RoundTrips() (int64, bool) { return l.team.traffic.RoundTrips(), true }
func (l *local) Close() error              { return l.team.close() }
