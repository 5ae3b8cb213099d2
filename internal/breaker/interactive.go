package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
)

// Inject injects a fault now, outside the plan. It heals the fault after a given time or, if that time is 0, at the
// end of the run.
func (b *Breaker) Inject(ctx, ending context.Context, step faults.Step, healed time.Duration) error {
	step.From = b.r.Clock().Now()
	if healed > 0 {
		step.To = step.From + healed
	}
	a, err := b.place(step.Injection(b.o.Scene))
	if err != nil {
		return err
	}
	go func() {
		defer b.steps.Done()
		defer b.giveBack(a)
		b.failed(step, b.step(ctx, ending, a, step))
	}()
	return nil
}

// Record records a change that the user makes to the run, such as another rate or a stop by Ctrl-Z. The record has
// this name and effect, and lasts from now until over is called. The last parameter makes the change and returns
// the text of the note. Its error is recorded and returned.
func (b *Breaker) Record(name string, e history.Effect, do func() (what string, err error)) (over func(), err error) {
	now := b.r.Clock().Now()
	a, err := b.place(history.Injection{Name: name, At: "@" + now.Round(time.Millisecond).String(), From: now,
		Effect: e})
	if err != nil {
		return func() {}, err
	}
	lane := b.lanes[2*a.place]
	op := lane.Call(history.Fault, -1)
	what, err := do()
	op.Value, op.Outcome = a.number, history.OK
	if err != nil {
		op.Outcome = history.Failed
	}
	b.r.Note(op.ID, what)
	lane.Return(op)
	return func() {
		defer b.steps.Done()
		op := lane.Call(history.Heal, -1)
		op.Value, op.Outcome = a.number, history.OK
		lane.Return(op)
		b.giveBack(a)
	}, err
}

// Interactive reports whether any fault was injected or recorded beside the plan.
func (b *Breaker) Interactive() bool { return b.extras.Load() }

// place reserves lanes for a fault that is in no plan. The caller calls steps.Done when the fault is over.
func (b *Breaker) place(i history.Injection) (act, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return act{}, errors.New("the run is about to end")
	case len(b.free) == 0:
		return act{}, fmt.Errorf("%d faults that were injected by hand are at work, there is no room for more",
			b.o.Extra)
	}
	last := len(b.free) - 1
	i.ByHand = true
	a := act{number: b.r.Inject(i), place: b.free[last], extra: true}
	b.free = b.free[:last]
	b.extras.Store(true)
	b.steps.Add(1)
	return a, nil
}

func (b *Breaker) giveBack(a act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, a.place)
}
