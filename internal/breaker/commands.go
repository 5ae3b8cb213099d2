package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/program"
	"hammerlock/internal/wire"
)

// atCommands runs a step at its point among a program's commands. The fault acts on the message itself, or on the
// program or its servers.
func (b *Breaker) atCommands(ctx, ending context.Context, a act, step faults.Step) {
	var met, busy atomic.Int64
	var message faults.Message
	if step.Fault.Message != nil {
		message = step.Fault.Message(step.Arg)
	}
	var lane sync.Mutex // guards the fault's lane, which may have only one writer at a time
	b.d.Program.At(step.Point, message.Refuse != "", func(lock string) (*wire.Action, bool) {
		if !step.Hit(int(met.Add(1))) || !b.joins(ending) {
			return nil, false
		}
		if step.Fault.Message != nil {
			b.messaged(a, message, &lane)
			return &wire.Action{Refuse: message.Refuse, Delay: message.Delay, Cut: message.Cut,
				Drop: message.Drop}, true
		}
		if !busy.CompareAndSwap(0, 1) { // the fault is in force already
			b.steps.Done()
			return nil, true
		}
		broken := make(chan struct{})
		go func() {
			defer b.steps.Done()
			defer busy.Store(0)
			b.failed(step, b.breakAndHeal(ctx, ending, a, step, lock, sync.OnceFunc(func() { close(broken) })))
		}()
		if step.Fault.Fits(faults.OfService) { // the program must be stopped before it gets this reply
			return &wire.Action{Call: func() { <-broken }}, true
		}
		return nil, true
	})
}

// joins adds a fault that is about to begin to b.steps, and returns true. The caller calls steps.Done when the
// fault is over. If the run is about to end, joins does nothing and returns false.
func (b *Breaker) joins(ending context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || ending.Err() != nil {
		return false
	}
	b.steps.Add(1)
	return true
}

// messaged records a fault that changes one message. The fault begins now, and ends after the message's delay. Then
// messaged calls steps.Done, as joins requires.
func (b *Breaker) messaged(a act, m faults.Message, lane *sync.Mutex) {
	mark := func(kind history.Kind) {
		lane.Lock()
		defer lane.Unlock()
		b.lanes[2*a.place].Mark(&history.Op{Kind: kind, Key: -1, Worker: -1, Value: a.number,
			Call: b.r.Clock().Now(), Outcome: history.OK})
	}
	mark(history.Fault)
	time.AfterFunc(m.Delay, func() {
		defer b.steps.Done()
		mark(history.Heal)
	})
}

// breakAndHeal breaks the program or its servers, and calls the function broken when that is done. It heals
// the fault later.
func (b *Breaker) breakAndHeal(ctx, ending context.Context, a act, step faults.Step, lock string, broken func()) error {
	defer broken()
	target := b.ofProgram(a.place, step, lock)
	target.Over = func() {}
	if step.Point == faults.Granted {
		target.Caught = standing()
	}
	heal, err := b.inject(ending, a, step, target)
	broken()
	if heal != nil {
		b.until(ending, b.r.Clock().Now()+step.Force())
	}
	return errors.Join(err, b.heal(ctx, a, heal))
}

// ofProgram returns the target of a fault that acts on a program or its servers, not on a message.
func (b *Breaker) ofProgram(place int, step faults.Step, lock string) *faults.Target {
	return &faults.Target{Scene: b.o.Scene, Topology: b.d.Topology, Workers: clients{b.d.Program, lock}, Arg: step.Arg,
		Rand: rand.New(rand.NewPCG(b.o.Shape.Seed, uint64(place))),
		TTL:  max(b.d.Program.Lease(), time.Second), Keys: 1, LockKey: func(int32) string { return lock }}
}

// clients are a program's clients, which can be caught when they are granted a lock.
type clients struct {
	program *program.Source
	lock    string
}

// standing returns a client that is about to get its grant. The client is not stopped; it holds the lock while its
// program goes on.
func standing() *faults.Caught {
	return &faults.Caught{Key: -1, At: faults.Granted, Go: func() {}, Die: func() {}}
}

// Catch implements faults.Workers.
func (c clients) Catch(ctx context.Context, point string, _ int32) (*faults.Caught, error) {
	if point != faults.Granted {
		return nil, fmt.Errorf("a program can be caught when it is granted a lock, not %q", point)
	}
	return standing(), c.program.Grant(ctx, c.lock)
}

// Process implements faults.Workers.
func (clients) Process(int32) (faults.Process, error) {
	return nil, errors.New("the program's processes are its own")
}

// Agent implements faults.Workers.
func (clients) Agent(int32) (faults.Agent, error) {
	return faults.Agent{}, errors.New("the program runs on this machine")
}
