package crew

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/results"
	"hammerlock/workload"
)

// Crew is the set of workers of a run: in this process, in child processes or on other machines.
type Crew interface {
	// Begin starts the run's clock, whose zero is the time of the call. Workers send on wake when their lanes fill up.
	Begin(wake chan<- struct{}) (*Session, error)
	// Run lets the workers work until their plan or stop ends. If ctx ends, calls in progress are cancelled.
	Run(ctx, stop context.Context) (Report, error)
	// RoundTrips is the number of round trips of the locks' clients so far; false if it is known only at the end.
	RoundTrips() (int64, bool)
	Close() error
}

// Session has what a run needs of a running crew.
type Session struct {
	Clock     *history.Clock
	Lanes     []*history.Lane // the recorded operations of all workers
	Slack     time.Duration   // largest difference between the clocks of two workers
	Gate      Catcher         // of all workers
	Tempo     *workload.Tempo // changes the rate of an open loop; nil if the orders do not allow that
	Processes []*Process      // the worker processes; nil if the workers run in this process

	// The following fields are for workers on other machines, and zero if there are none.
	Feeds []*history.Feed // what they record
	// called with the time up to which the history was written, and with Forever at the end
	Written func(upTo time.Duration)
	Rate    float64                    // largest drift of their clocks against those of servers, as a ratio
	Agents  func() []results.LiveAgent // how they do
	Doubts  []history.Doubt            // error bounds tighter than Slack, for each process
	// Proven returns the final error bounds of the clocks, which replace Slack and Doubts.
	Proven func() history.Agreement
}

// Remote returns the state of the workers on other machines; nil if there are none.
func (s *Session) Remote() []results.LiveAgent {
	if s.Agents == nil {
		return nil
	}
	return s.Agents()
}

// Catcher can stop a worker at a point of its visit. It is a workload.Gate, or the gates of several machines.
type Catcher interface {
	Catch(ctx context.Context, p workload.Point, key int32) (*workload.Caught, error)
}

// Maker makes a Crew. It starts processes on this machine with spawn.
type Maker func(ctx context.Context, o Orders, spawn Spawn) (Crew, error)

// Dead lists the lanes of processes that have ended too early.
func (s *Session) Dead() (lanes []int) {
	for _, p := range s.Processes {
		if p.Dead() {
			lanes = append(lanes, p.Lanes...)
		}
	}
	return lanes
}

// laneSlots is the number of slots for each of n lanes: far more than workers record between two readings.
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

// local is a Crew in this process.
type local struct{ team *team }

// Local makes a Crew in this process. The counter is one in memory; nil if the orders say where it is.
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
