package harness

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
	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// healthTimeout bounds how long a deployment may take to be healthy again after the last fault was healed.
const healthTimeout = 30 * time.Second

// breaker carries out the plan of faults beside the workload and records what it does.
type breaker struct {
	stage *stage
	clock *history.Clock
	gate  gate
	// Two lanes a step: its own operations, and the deaths of workers that it causes meanwhile. Those of faults that
	// a person injects follow, if anybody watches.
	lanes   []*history.Lane
	note    func(history.ID, string)
	stops   func(worker int32, stands bool) // is told of workers that stand; nil if nobody watches
	meddled atomic.Bool                     // a person has injected something

	pace   sync.Mutex // held by whoever changes the rate
	alone  sync.Mutex // held by a fault that the seed placed: they do not overlap, however long each takes
	mu     sync.Mutex
	active int // faults that are not healed
	errs   []error
	closed bool  // nothing new may be injected
	keys   int64 // faults that a person has injected
	free   []int // places in lanes for those
	steps  sync.WaitGroup
}

// act is a fault on its way: its number in the plan, negative if it is in none, and the place of its lanes.
type act struct {
	number int64
	place  int
}

// faultSlots is the room of a fault's lane: a few operations, a few deaths.
const faultSlots = 128

// breaker makes the breaker; its lanes are numbered from first.
func (s *stage) breaker(clock *history.Clock, first int, wake chan<- struct{}, note func(history.ID, string)) *breaker {
	b := &breaker{stage: s, clock: clock, note: note, gate: gate{gate: s.crew.Gate()}}
	places := len(s.combo.Steps)
	if s.job.Watched {
		for i := range keyPlaces {
			b.free = append(b.free, places+i)
		}
		places += keyPlaces
	}
	for i := range 2 * places {
		b.lanes = append(b.lanes, history.NewLane(clock, first+i, -1, faultSlots, wake))
	}
	return b
}

// start lets the plan begin. When ending is done nothing new is broken, and everything is healed.
func (b *breaker) start(ctx, ending context.Context) {
	for i, step := range b.stage.combo.Steps {
		b.steps.Go(func() {
			b.failed(step, b.step(ctx, ending, act{int64(i), i}, step))
		})
	}
}

func (b *breaker) failed(step faults.Step, err error) {
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.errs = append(b.errs, fmt.Errorf("fault %s: %w", step, err))
	}
}

// wait returns when everything is healed; its error says what is not.
func (b *breaker) wait() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.steps.Wait()
	return errors.Join(b.errs...)
}

func (b *breaker) until(ctx context.Context, at time.Duration) bool {
	timer := time.NewTimer(at - b.clock.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (b *breaker) step(ctx, ending context.Context, a act, step faults.Step) error {
	if !b.until(ending, step.From) {
		return nil // activity will say that it never happened
	}
	if step.Alone {
		b.alone.Lock()
		defer b.alone.Unlock()
		if ending.Err() != nil {
			return nil
		}
	}
	lane := b.lanes[2*a.place]
	target := b.target(a.place, step)
	if step.Point != "" {
		caught, err := target.Crew.Catch(ending, step.Point, -1)
		if err != nil {
			return nil
		}
		target.Caught = caught
		defer caught.Go()
	}
	b.count(1)
	key := int32(-1)
	if target.Caught != nil {
		key = target.Caught.Key
	}
	op := lane.Call(history.Fault, key)
	what, heal, err := step.Fault.Inject(ending, target)
	op.Value, op.Outcome = a.number, history.OK
	if err != nil {
		op.Outcome, what = history.Failed, err.Error()
		if errors.Is(err, faults.ErrNobody) || errors.Is(err, workload.ErrNobody) {
			err = nil // the run says so, as a fault that met nobody
		}
	}
	if a.number < 0 { // a person who asked for what cannot be had has not broken the run
		what, err = history.ByKey+step.Fault.Name+": "+what, nil
	}
	b.note(op.ID, what)
	lane.Return(op)
	if heal != nil && step.To > 0 {
		b.until(ending, step.To)
	} else if heal != nil {
		<-ending.Done()
	}
	if target.Caught != nil {
		target.Caught.Go()
	}
	return errors.Join(err, b.heal(ctx, lane, a.number, heal))
}

// heal mends, and waits for health if nothing else is broken.
func (b *breaker) heal(ctx context.Context, lane *history.Lane, number int64, heal faults.Heal) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	op := lane.Call(history.Heal, -1)
	if heal != nil {
		err = heal(ctx)
	}
	if b.count(-1) == 0 {
		err = errors.Join(err, b.healthy(ctx))
	}
	op.Value, op.Outcome = number, history.OK
	if err != nil {
		op.Outcome = history.Failed
	}
	lane.Return(op)
	return err
}

func (b *breaker) healthy(ctx context.Context) error {
	for _, site := range b.stage.topology.Sites {
		if err := site.Repair(ctx); err != nil {
			return fmt.Errorf("mend: %w", err)
		}
	}
	if err := b.stage.topology.AwaitHealthy(ctx); err != nil {
		return fmt.Errorf("the deployment did not come back: %w", err)
	}
	return nil
}

func (b *breaker) count(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active += n
	return b.active
}

func (b *breaker) target(i int, step faults.Step) *faults.Target {
	w := &b.stage.job.Plan.Workload
	return &faults.Target{
		Scene: b.stage.job.Plan.scene(b.stage.combo), Topology: b.stage.topology, Arg: step.Arg,
		Rand: rand.New(rand.NewPCG(w.Seed, uint64(i)|1<<34)), TTL: w.TTL, Keys: w.Keys,
		LockKey: func(key int32) string { return b.stage.pages[key].Lock },
		Crew:    &hands{b, b.lanes[2*i+1]},
	}
}

// gate is the crew's gate, for one fault at a time.
type gate struct {
	mu   sync.Mutex
	gate *workload.Gate
}

// hands are what one fault gets hold of workers with.
type hands struct {
	breaker *breaker
	lane    *history.Lane
}

// Catch implements faults.Crew.
func (h *hands) Catch(ctx context.Context, point string, key int32) (*faults.Caught, error) {
	g := &h.breaker.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := workload.FindPoint(point)
	if !ok {
		return nil, fmt.Errorf("no point %q", point)
	}
	caught, err := g.gate.Catch(ctx, p, key)
	if err != nil {
		return nil, err
	}
	h.breaker.stands(caught.Worker, true)
	return &faults.Caught{
		Worker: caught.Worker, Key: caught.Key,
		Go:  func() { h.breaker.stands(caught.Worker, false); caught.Go() },
		Die: func() { h.breaker.stands(caught.Worker, false); caught.Die() },
	}, nil
}

// Process implements faults.Crew.
func (h *hands) Process(worker int32) (faults.Process, error) {
	for _, p := range h.breaker.stage.crew.Processes() {
		for _, w := range p.Workers {
			if w == worker {
				return &victim{p, h}, nil
			}
		}
	}
	return nil, errors.New("the workers live in the suite's own process")
}

func (b *breaker) stands(worker int32, stands bool) {
	if b.stops != nil {
		b.stops(worker, stands)
	}
}

// victim is a process whose death is recorded.
type victim struct {
	*crew.Process
	hands *hands
}

// Kill implements faults.Process. Its workers believe in nothing from before the kill.
func (v *victim) Kill() error {
	now := v.hands.breaker.clock.Now()
	for _, w := range v.Workers {
		v.hands.lane.Mark(&history.Op{Kind: history.Crash, Key: -1, Worker: w, Call: now, Outcome: history.OK})
	}
	return v.Process.Kill()
}

// Stop implements faults.Process.
func (v *victim) Stop() error { return v.stand(true, v.Process.Stop) }

// Continue implements faults.Process.
func (v *victim) Continue() error { return v.stand(false, v.Process.Continue) }

func (v *victim) stand(stands bool, signal func() error) error {
	for _, w := range v.Workers {
		v.hands.breaker.stands(w, stands)
	}
	return signal()
}
