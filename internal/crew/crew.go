package crew

import (
	"context"
	"time"

	"hammerlock/history"
	"hammerlock/workload"
)

// Crew is the workers of a run, wherever they live.
type Crew interface {
	// Begin starts the run's clock: its zero is now.
	Begin(wake chan<- struct{}) error
	// Run lets the workers work until their plan ends or stop is done; calls in progress are called off when ctx
	// is done.
	Run(ctx, stop context.Context) (Report, error)
	Clock() *history.Clock
	// Lanes are all lanes that the workers write, once the run has begun.
	Lanes() []*history.Lane
	Slack() time.Duration   // by how much the clocks of two lanes may differ
	Gate() *workload.Gate   // of all of them
	Tempo() *workload.Tempo // of their open loop, if the orders let it be changed
	Processes() []*Process  // nil if the workers live in this process
	Close() error
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

func newClock(ordered bool, offset time.Duration) *history.Clock {
	if ordered {
		return history.NewOrderedClock(offset)
	}
	return history.NewClock(offset)
}

// local is a crew in this process.
type local struct {
	team  *team
	clock *history.Clock
	lanes []*history.Lane
	gate  *workload.Gate
	tempo *workload.Tempo
}

// Local makes a crew in this process. The counter is one of its memory; nil if the orders say where it is.
func Local(o Orders, counter workload.Counter) (Crew, error) {
	t, err := o.open(counter)
	if err != nil {
		return nil, err
	}
	return &local{team: t, gate: workload.NewGate(), tempo: workload.NewTempo()}, nil
}

func (l *local) Begin(wake chan<- struct{}) error {
	n := l.team.orders.Shape.Workers
	l.clock, l.lanes = newClock(l.team.orders.Judged, 0), nil
	count := Lanes(n, l.team.spec.Claims)
	for i := range count {
		l.lanes = append(l.lanes, history.NewLane(l.clock, i, int32(i%n), laneSlots(count), wake))
	}
	return l.team.begin(l.clock, l.lanes, l.gate, l.tempo)
}

func (l *local) Run(ctx, stop context.Context) (Report, error) {
	r := l.team.run(ctx, stop)
	return r, r.err()
}

func (l *local) Clock() *history.Clock  { return l.clock }
func (l *local) Lanes() []*history.Lane { return l.lanes }
func (l *local) Slack() time.Duration   { return 0 }
func (l *local) Gate() *workload.Gate   { return l.gate }
func (l *local) Tempo() *workload.Tempo { return l.tempo }
func (l *local) Processes() []*Process  { return nil }
func (l *local) Close() error           { return l.team.close() }

// RoundTrips is how many round trips the locks' clients of this process have made.
func (l *local) RoundTrips() int64 { return l.team.traffic.RoundTrips() }
