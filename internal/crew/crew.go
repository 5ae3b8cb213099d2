package crew

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/results"
	"hammerlock/workload"
)

// Crew is the set of workers of a run, in this process, in child processes or on other machines.
type Crew interface {
	// Begin starts the run's clock, whose zero is the time of this call. A worker sends on wake when its lane fills
	// up.
	Begin(wake chan<- struct{}) (*Session, error)
	// Run lets the workers work until their plan or stop ends. When ctx ends, calls in progress are cancelled.
	Run(ctx, stop context.Context) (Report, error)
	// RoundTrips returns the number of round trips that the locks' clients have made so far; false if it is known only
	// at the end.
	RoundTrips() (int64, bool)
	Close() error
}

// Session has the parts of a running crew that a run needs.
type Session struct {
	Clock     *history.Clock
	Lanes     []*history.Lane // lanes with the recorded operations of all workers
	Slack     time.Duration   // largest difference between the clocks of two workers
	Gate      Catcher         // can stop any worker
	Tempo     *workload.Tempo // changes the rate of an open loop; nil if the orders do not allow that
	Processes []*Process      // the worker processes; nil if the workers run in this process

	// The other fields are for workers on other machines, and zero if there are none.
	Feeds []*history.Feed // records of these workers
	// Written is called with the time up to which the history is written; at the end, with Forever.
	Written func(upTo time.Duration)
	Rate    float64                    // largest drift between their clocks and the servers' clocks, as a ratio
	Agents  func() []results.LiveAgent // current states of the agents
	Doubts  []history.Doubt            // error bounds of each process, tighter than Slack
	// Proven returns the final error bounds of the clocks. They replace Slack and Doubts.
	Proven func() history.Agreement
}

// Remote returns the states of the agents on other machines; nil if there are none.
func (s *Session) Remote() []results.LiveAgent {
	if s.Agents == nil {
		return nil
	}
	return s.Agents()
}

// Catcher can stop a worker at a point of its visit. It is a workload.Gate, or combines the gates of several machines.
type Catcher interface {
	Catch(ctx context.Context, p workload.Point, key int32) (*workload.Caught, error)
}

// Maker makes a Crew. It uses spawn to start processes on this machine.
type Maker func(ctx context.Context, o Orders, spawn Spawn) (Crew, error)

// Dead returns the lanes of processes that ended too early.
func (s *Session) Dead() (lanes []int) {
	for _, p := range s.Processes {
		if p.Dead() {
			lanes = append(lanes, p.Lanes...)
		}
	}
	return lanes
}

// laneSlots returns how many operations each of n lanes has room for. These are far more than a worker
// records between two readings.
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

type local struct{ team *team }

// Local makes a Crew in this process. The argument counter is a counter in memory; nil if the orders tell where views
// are counted.
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
