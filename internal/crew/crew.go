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
	// Begin starts the run's clock: its zero is now. Workers send on wake when their lanes fill up.
	Begin(wake chan<- struct{}) (*Session, error)
	// Run lets the workers work until their plan ends or stop is done. Calls in progress are cancelled when ctx is
	// done.
	Run(ctx, stop context.Context) (Report, error)
	// RoundTrips is the number of round trips of the locks' clients so far; false if it is unknown before the end.
	RoundTrips() (int64, bool)
	Close() error
}

// Session is what a running crew offers to the run, once the clock has started.
type Session struct {
	Clock     *history.Clock
	Lanes     []*history.Lane // all lanes of the workers
	Slack     time.Duration   // the largest difference between the clocks of two lanes
	Gate      Catcher         // of all workers
	Tempo     *workload.Tempo // changes the rate of the open loop, if the orders allow it
	Processes []*Process      // nil if the workers live in this process

	// For workers on other machines; zero values without such workers.
	Feeds []*history.Feed // what they record
	// is called with the time up to which the history is written, and with Forever at the end
	Written func(upTo time.Duration)
	Rate    float64                    // the largest drift of their clocks against those of servers, as a share
	Agents  func() []results.LiveAgent // how they do
	Doubts  []history.Doubt            // bounds that are tighter than Slack, by process
	// Proven returns the clocks' final error bounds, which replace Slack and Doubts.
	Proven func() history.Agreement
}

// Remote returns the state of workers on other machines; nil without such workers.
func (s *Session) Remote() []results.LiveAgent {
	if s.Agents == nil {
		return nil
	}
	return s.Agents()
}

// Catcher stops a worker at a point of its visit: a workload.Gate, or the gates of several machines.
type Catcher interface {
	Catch(ctx context.Context, p workload.Point, key int32) (*workload.Caught, error)
}

// Maker makes a crew. It starts its processes on this machine with spawn.
type Maker func(ctx context.Context, o Orders, spawn Spawn) (Crew, error)

// Dead lists the lanes of processes that have ended early.
func (s *Session) Dead() (lanes []int) {
	for _, p := range s.Processes {
		if p.Dead() {
			lanes = append(lanes, p.Lanes...)
		}
	}
	return lanes
}

// laneSlots is the size of each of n lanes. Together they hold far more than is recorded between two visits of the
// reader.
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

// Local makes a crew in this process. counter is a counter in this process's memory; nil if the orders name another
// place.
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
