package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/topologies"
)

const (
	keyPlaces = 8               // faults that a person can have at work at the same time
	keyHeals  = 3 * time.Second // after that a fault that a person injected is healed
)

var errOver = errors.New("the run is about to end")

// controls are what a person may do to the run. Everything is recorded as what it is: a fault.
func (s *stage) controls(ctx, ending context.Context, w *watch) *measure.Controls {
	b := w.breaker
	c := &measure.Controls{Kill: func(node string) error { return b.killByKey(ctx, ending, node) }, Pause: b.pauseByKey, Rate: b.rateByKey}
	scene := s.job.Plan.scene(s.combo)
	known := map[string]faults.Fault{}
	for _, f := range faults.All {
		refused := f.Refused(scene, s.topology.Options)
		c.Faults = append(c.Faults, measure.Choice{Name: f.Name, Doc: f.Doc, Refused: refused})
		if refused == "" {
			known[f.Name] = f
		}
	}
	c.Inject = func(name string) error {
		f, ok := known[name]
		if !ok {
			return fmt.Errorf("%s cannot be had here", name)
		}
		return b.byKey(ctx, ending, f, keyHeals)
	}
	return c
}

// byKey lets a fault happen now, beside the plan. It is healed after a while, or at the end.
func (b *breaker) byKey(ctx, ending context.Context, f faults.Fault, healed time.Duration) error {
	a, err := b.place()
	if err != nil {
		return err
	}
	step := faults.Step{Fault: f, From: b.clock.Now()}
	if healed > 0 {
		step.To = step.From + healed
	}
	go func() {
		defer b.steps.Done()
		defer b.giveBack(a)
		b.failed(step, b.step(ctx, ending, a, step))
	}()
	return nil
}

// place finds room for a fault by key. Who gets it calls steps.Done when it is over.
func (b *breaker) place() (act, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return act{}, errOver
	case len(b.free) == 0:
		return act{}, fmt.Errorf("%d faults by key are at work, that is all there is room for", keyPlaces)
	}
	last := len(b.free) - 1
	a := act{number: -b.keys - 1, place: b.free[last]}
	b.free = b.free[:last]
	b.keys++
	b.meddled.Store(true)
	b.steps.Add(1)
	return a, nil
}

func (b *breaker) giveBack(a act) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, a.place)
}

// killByKey kills a node, or brings one back that is down.
func (b *breaker) killByKey(ctx, ending context.Context, name string) error {
	for _, n := range b.stage.topology.Nodes {
		if n.Name != name {
			continue
		}
		if n.State() == topologies.Down {
			return b.byKey(ctx, ending, faults.Fault{Name: "start-node", Inject: func(ctx context.Context, _ *faults.Target) (string, faults.Heal, error) {
				return "started " + name, nil, n.Start(ctx)
			}}, time.Millisecond)
		}
		return b.byKey(ctx, ending, faults.Fault{Name: "kill-node", Inject: func(context.Context, *faults.Target) (string, faults.Heal, error) {
			heal := func(ctx context.Context) error {
				if n.State() != topologies.Down {
					return nil
				}
				return n.Start(ctx)
			}
			return "killed " + name, heal, n.Kill()
		}}, 0)
	}
	return fmt.Errorf("there is no node %s", name)
}

// The rate of a plan may be changed to so many times what it was.
const (
	slowest = 1.0 / 100
	fastest = 100.0
)

// rateByKey lets the visits that are still to come follow each other faster or slower by a factor, and returns the new
// rate. It breaks nothing, so it is over as soon as it has begun.
func (b *breaker) rateByKey(factor float64) (float64, error) {
	plan := b.stage.job.Plan.Workload.Rate
	if plan == 0 {
		return 0, errors.New("a closed loop has no rate: its workers go on as soon as they can; --rate 100/s makes an open one")
	}
	b.pace.Lock()
	defer b.pace.Unlock()
	tempo := b.stage.crew.Tempo()
	before, after := plan*tempo.Speed(), plan*tempo.Speed()*factor
	if after > maxRate || after > plan*fastest || after < plan*slowest {
		return before, fmt.Errorf("%s visits a second is as far as it goes: at most %s, at least %s, of %s planned", human.Number(before),
			human.Number(min(maxRate, plan*fastest)), human.Number(plan*slowest), human.Number(plan))
	}
	a, err := b.place()
	if err != nil {
		return before, err
	}
	defer b.steps.Done()
	defer b.giveBack(a)
	lane := b.lanes[2*a.place]
	op := lane.Call(history.Fault, -1)
	from, err := tempo.Change(b.clock.Now(), after/plan)
	op.Value, op.Outcome = a.number, history.OK
	if err != nil {
		op.Outcome, after = history.Failed, before
		b.note(op.ID, history.RateByKey+err.Error())
	} else {
		b.note(op.ID, fmt.Sprintf("%s%s/s became %s/s from %.3f s on", history.RateByKey, human.Number(before), human.Number(after), from.Seconds()))
	}
	lane.Return(op)
	op = lane.Call(history.Heal, -1)
	op.Value, op.Outcome = a.number, history.OK
	lane.Return(op)
	return after, err
}

// pauseByKey records that the whole suite stands still, as a person at a terminal can make it.
func (b *breaker) pauseByKey(why string) (resume func()) {
	a, err := b.place()
	if err != nil {
		return func() {}
	}
	lane := b.lanes[2*a.place]
	op := lane.Call(history.Fault, -1)
	op.Value, op.Outcome = a.number, history.OK
	b.note(op.ID, history.ByKey+"stop-process: "+why)
	lane.Return(op)
	return func() {
		defer b.steps.Done()
		op := lane.Call(history.Heal, -1)
		op.Value, op.Outcome = a.number, history.OK
		lane.Return(op)
		b.giveBack(a)
	}
}
