// Package breaker injects the faults of a run: those of its plan, and those that a user injects by pressing a key.
// It records each fault and its end as operations, and waits until the deployment is healthy again. Package faults
// has the faults themselves.
package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/recording"
	"hammerlock/internal/wire"
	"hammerlock/workload"
)

// healthTimeout is how long the deployment may take to become healthy after the last fault was healed.
const healthTimeout = 30 * time.Second

// Options say which faults are injected.
type Options struct {
	Steps []faults.Step
	Scene faults.Scene
	Shape *workload.Shape
	// Extra is the largest number of faults injected by a user that may be in force at the same time.
	Extra int
	// Begun is called with the number and name of a fault when its injection begins; may be nil. An injection may take
	// some time.
	Begun func(number int64, name string, at time.Duration)
	// Stopped is called when a fault stops a worker, and when the worker goes on; may be nil.
	Stopped func(worker int32, stopped bool)
}

// Breaker injects faults into a deployment.
type Breaker struct {
	o       Options
	d       *deployment.Deployment
	r       *recording.Recording
	session *crew.Session
	gate    sync.Mutex // guards the crew's gate, which serves one fault at a time
	// Each fault has two lanes: for its own operations, and for the deaths of workers that it causes. The lanes for
	// faults that a user injects come last.
	lanes []*history.Lane

	mended []mended     // indexed by the number of the step
	active atomic.Int32 // number of faults in force
	extras atomic.Bool  // a user has injected faults
	alone  sync.Mutex   // locked during a fault whose time was drawn at random, so that such faults never overlap
	mu     sync.Mutex
	errs   []error
	closed bool  // no fault may be injected any more
	free   []int // free lanes for faults that a user injects
	steps  sync.WaitGroup
}

// mended has a channel that is closed when a step is over: its fault was healed, or will not be injected.
type mended struct {
	done <-chan struct{}
	say  func() // closes the channel done; may be called several times
}

// act is a fault in progress: its number in the history, the index of its lanes, and whether a user has injected it.
type act struct {
	number int64
	place  int
	extra  bool
}

// faultSlots is the size of a fault's lane. It is enough for a few operations and a few deaths.
const faultSlots = 128

// New makes a Breaker. It adds its lanes to the recording, which must not have begun.
func New(d *deployment.Deployment, r *recording.Recording, s *crew.Session, o Options) *Breaker {
	b := &Breaker{o: o, d: d, r: r, session: s}
	for i := range o.Extra {
		b.free = append(b.free, len(o.Steps)+i)
	}
	for range o.Steps {
		done := make(chan struct{})
		b.mended = append(b.mended, mended{done, sync.OnceFunc(func() { close(done) })})
	}
	for range 2 * (len(o.Steps) + o.Extra) {
		b.lanes = append(b.lanes, r.Lane(faultSlots))
	}
	return b
}

// Start starts to carry out the plan. When the context ending is done, no new fault is injected, and all
// faults are healed.
func (b *Breaker) Start(ctx, ending context.Context) {
	for i, step := range b.o.Steps {
		if b.d.Program != nil && step.Point != "" {
			b.atCommands(ctx, ending, act{number: int64(i), place: i}, step)
			continue
		}
		if b.d.Program != nil { // the hook makes the source keep track of the last granted lock
			b.d.Program.At(faults.Granted, false, func(string) (*wire.Action, bool) { return nil, false })
		}
		b.steps.Go(func() {
			defer b.mended[i].say()
			b.failed(step, b.step(ctx, ending, act{number: int64(i), place: i}, step))
		})
	}
}

// Wait returns when all faults are healed. It returns the errors of faults that could not be injected or healed.
func (b *Breaker) Wait() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.steps.Wait()
	return errors.Join(b.errs...)
}

func (b *Breaker) failed(step faults.Step, err error) {
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t, ok := errors.AsType[net.Error](err); ok && t.Timeout() {
			err = fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		if b.d.Program != nil { // the run stays valid without this fault, so the error is only a note
			b.d.Program.Note(fmt.Sprintf("%s: %v", step, err))
			return
		}
		b.errs = append(b.errs, fmt.Errorf("fault %s: %w", step, err))
	}
}

func (b *Breaker) until(ctx context.Context, at time.Duration) bool {
	select {
	case <-time.After(at - b.r.Clock().Now()):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// inOrder waits until all steps are healed whose planned heal is before this step. Without it, steps would run in
// any order if the machine pauses beyond the times of several steps. It returns false if the run ends first.
func (b *Breaker) inOrder(ending context.Context, step faults.Step) bool {
	for i, s := range b.o.Steps {
		if s.Alone || s.Point != "" || s.To == 0 || s.To > step.From { // the first two kinds have no planned time
			continue
		}
		select {
		case <-b.mended[i].done:
		case <-ending.Done():
			return false
		}
	}
	return true
}

// step waits for its time, and for a worker at its point. Then it injects the fault and heals it. If Each is set, it
// repeats this for further workers at the point.
func (b *Breaker) step(ctx, ending context.Context, a act, step faults.Step) error {
	if !b.until(ending, step.From) || !b.inOrder(ending, step) {
		return nil // the activity verdict will report that it never happened
	}
	if step.Alone {
		b.alone.Lock()
		defer b.alone.Unlock()
		if ending.Err() != nil {
			return nil
		}
		if late := b.r.Clock().Now() - step.From; late > 0 && step.To > 0 {
			step.To += late // the previous fault took longer than planned
		}
	}
	for n := 1; ; n++ {
		target := b.target(a.place, step)
		if step.Point != "" {
			caught, err := target.Workers.Catch(ending, step.Point, -1)
			if err != nil {
				return nil
			}
			if target.Caught = caught; !step.Hit(n) {
				caught.Go()
				continue
			}
		}
		if err := b.breakOnce(ctx, ending, a, step, target); err != nil || step.Each == 0 {
			return err
		}
	}
}

func (b *Breaker) breakOnce(ctx, ending context.Context, a act, step faults.Step, target *faults.Target) error {
	ending, over := context.WithCancel(ending)
	defer over()
	target.Over = over
	if target.Caught != nil {
		defer target.Caught.Go()
	}
	if step.Lasts > 0 {
		step.To = b.r.Clock().Now() + step.Lasts
	}
	heal, err := b.inject(ending, a, step, target)
	if heal != nil && step.To > 0 {
		b.until(ending, step.To)
	} else if heal != nil {
		<-ending.Done()
	}
	if target.Caught != nil {
		target.Caught.Go()
	}
	return errors.Join(err, b.heal(ctx, a, heal))
}

// inject injects a fault and records it.
func (b *Breaker) inject(ctx context.Context, a act, step faults.Step, target *faults.Target) (faults.Heal, error) {
	b.active.Add(1)
	key := int32(-1)
	if target.Caught != nil {
		key = target.Caught.Key
	}
	lane := b.lanes[2*a.place]
	op := lane.Call(history.Fault, key)
	if b.o.Begun != nil {
		b.o.Begun(a.number, step.Fault.Name, op.Call)
	}
	what, heal, err := step.Fault.Inject(ctx, target)
	if b.d.Program != nil {
		b.d.Program.Crashed(op.Call)
	}
	op.Value, op.Outcome = a.number, history.OK
	if err != nil {
		op.Outcome, what = history.Failed, err.Error()
		if errors.Is(err, faults.ErrNobody) || errors.Is(err, workload.ErrNobody) {
			err = nil // no worker came to the fault's point; the run reports this later
		}
	}
	if err != nil && ctx.Err() != nil {
		what, err = "the run ended before it was done: "+what, nil
	}
	if a.extra {
		err = nil // a fault by hand that cannot be injected does not break the run
	}
	b.r.Note(op.ID, what)
	lane.Return(op)
	return heal, err
}

// heal heals a fault. If no other fault is in force, it waits until the deployment is healthy.
func (b *Breaker) heal(ctx context.Context, a act, heal faults.Heal) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	lane := b.lanes[2*a.place]
	op := lane.Call(history.Heal, -1)
	if heal != nil {
		err = heal(ctx)
	}
	if !a.extra {
		b.mended[a.place].say()
	}
	if b.active.Add(-1) == 0 {
		err = errors.Join(err, b.healthy(ctx))
	}
	op.Value, op.Outcome = a.number, history.OK
	if err != nil {
		op.Outcome = history.Failed
		b.r.Note(op.ID, err.Error())
	}
	lane.Return(op)
	return err
}

// ErrUnhealthy says that all faults were healed but the deployment did not become healthy.
var ErrUnhealthy = errors.New("the deployment did not come back")

// ErrNoAnswer says that a server did not answer in time while a fault was injected into it or healed. The note of
// the fault in the history says so, too.
var ErrNoAnswer = errors.New("a server did not answer in time")

func (b *Breaker) healthy(ctx context.Context) error {
	for _, site := range b.d.Topology.Sites {
		if err := site.Repair(ctx); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
	}
	if err := b.d.Topology.AwaitHealthy(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	return nil
}

func (b *Breaker) target(place int, step faults.Step) *faults.Target {
	if b.d.Program != nil {
		return b.ofProgram(place, step, b.d.Program.Lock())
	}
	return &faults.Target{
		Scene: b.o.Scene, Topology: b.d.Topology, Arg: step.Arg,
		Rand: rand.New(rand.NewPCG(b.o.Shape.Seed, uint64(place)|1<<34)),
		TTL:  b.o.Shape.TTL, Keys: b.o.Shape.Keys, LockKey: func(key int32) string { return b.d.Pages[key].Lock },
		Workers: &workers{b, b.lanes[2*place+1]},
	}
}
