package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"hammerlock/history"
	"hammerlock/locks"
)

// Point is a place in a visit at which a fault can stop the worker. The worker waits there until the fault gives
// it an order.
type Point uint32

// The points.
const (
	_       Point = iota
	Refused       // after a refused try, before the wait for the next try
	Granted       // after a grant
	Loaded        // between load and store
	Between       // between two commands of a broken lock; a correct lock would send them as one
)

var points = [...]string{"nowhere", "refused", "granted", "loaded", "between"}

// String is the point's name on the command line.
func (p Point) String() string { return points[p] }

// FindPoint returns the point with that name.
func FindPoint(name string) (Point, bool) {
	i := slices.Index(points[:], name)
	return Point(max(i, 0)), i > 0
}

// AnyKey is passed to Catch to stop a worker whatever its key is.
const AnyKey = -1

// Gate stops one worker at a Point, until the fault lets the worker go on or kills it. Its state may lie in memory
// that the suite shares with worker processes.
type Gate struct {
	words *gateWords
	turn  int // the slot that was used last; only Catch reads and writes it
}

// gateWords is the state of a Gate. It has several slots, because the worker that was stopped before may still be in
// its slot, for example while its process is paused.
type gateWords struct {
	armed  atomic.Uint32 // number of the slot for the next worker to be stopped, counted from 1; 0 = stop no worker
	_      uint32
	places [16]place
}

type place struct {
	point  atomic.Uint32
	key    atomic.Int32
	order  atomic.Uint32
	caught atomic.Uint32 // set to 1 after worker, page and hold were written
	worker atomic.Int32
	page   atomic.Int32
	hold   atomic.Uint64 // the worker's hold; 0 at the points Refused and Between
}

// The orders that a fault can give to a stopped worker.
const (
	wait uint32 = iota
	goOn
	die
)

// NewGate makes a Gate for workers in this process.
func NewGate() *Gate { return &Gate{words: new(gateWords)} }

// GateIn makes a Gate in shared memory, which must be large enough, zeroed, and aligned to 8 bytes.
func GateIn(memory []byte) (*Gate, error) {
	words, err := over[gateWords](memory)
	return &Gate{words: words}, err
}

// over interprets shared memory as a value of type T.
func over[T any](memory []byte) (*T, error) {
	value := (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
	if size := unsafe.Sizeof(*value); uintptr(len(memory)) < size || uintptr(unsafe.Pointer(value))%8 != 0 {
		return nil, fmt.Errorf("shared memory for %T needs %d bytes at a multiple of eight", value, size)
	}
	return value, nil
}

// Caught is a worker that is stopped at a Point.
type Caught struct {
	Worker int32
	Key    int32
	Hold   history.ID // the worker's hold; 0 at the points Refused and Between
	// Elsewhere sends the order to a worker on another machine (true = die); nil = the worker is on this machine
	Elsewhere func(die bool)
	at        *place
}

// gatePoll is the interval at which the fault and the worker read the shared state.
const gatePoll = 100 * time.Microsecond

// ErrNobody means that no worker reached the Point before the context ended.
var ErrNobody = errors.New("no worker came by")

// Catch waits until a worker with the key (or AnyKey) reaches the Point, and stops that worker. Calls must not
// overlap.
func (g *Gate) Catch(ctx context.Context, p Point, key int32) (*Caught, error) {
	g.turn++
	number := uint32(g.turn%len(g.words.places)) + 1
	at := &g.words.places[number-1]
	at.caught.Store(0)
	at.order.Store(wait)
	at.key.Store(key)
	at.point.Store(uint32(p))
	g.words.armed.Store(number)
	timer := time.NewTicker(gatePoll)
	defer timer.Stop()
	late := false
	for at.caught.Load() == 0 {
		select {
		case <-timer.C:
		case <-ctx.Done():
			if late || g.words.armed.CompareAndSwap(number, 0) {
				return nil, fmt.Errorf("%w %s: %w", ErrNobody, p, context.Cause(ctx))
			}
			// A worker has reached the Point and is about to write its slot. Wait for at most a second, because its
			// process may have been killed.
			var cancel context.CancelFunc
			late = true
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
		}
	}
	return &Caught{Worker: at.worker.Load(), Key: at.page.Load(), Hold: history.ID(at.hold.Load()), at: at}, nil
}

// Go lets the stopped worker go on.
func (c *Caught) Go() { c.order(goOn) }

// Die ends the stopped worker, which does not release its lock.
func (c *Caught) Die() { c.order(die) }

func (c *Caught) order(what uint32) {
	if c.Elsewhere != nil {
		c.Elsewhere(what == die)
		return
	}
	c.at.order.CompareAndSwap(wait, what)
}

// Pause returns a function that a broken lock calls between two commands that a correct lock would send as one. A
// fault can stop or kill the worker there.
func (c *Workers) Pause(worker int) func(ctx context.Context, name string) error {
	return func(ctx context.Context, name string) error {
		if c.Gate == nil || c.Gate.words.armed.Load() == 0 {
			return nil
		}
		key := slices.IndexFunc(c.Pages, func(p Page) bool { return p.Lock == name })
		if c.Gate.pass(ctx, Between, int32(c.Shape.First+worker), int32(key), 0) {
			return nil
		}
		return locks.ErrCrashed
	}
}

// pass is called by a worker that reaches a Point. It blocks while the worker is stopped; false means that the worker
// must die.
func (g *Gate) pass(ctx context.Context, p Point, worker, key int32, hold history.ID) bool {
	number := g.words.armed.Load()
	if number == 0 {
		return true
	}
	at := &g.words.places[number-1]
	if k := at.key.Load(); at.point.Load() != uint32(p) || k != AnyKey && k != key ||
		!g.words.armed.CompareAndSwap(number, 0) {
		return true
	}
	at.worker.Store(worker)
	at.page.Store(key)
	at.hold.Store(uint64(hold))
	at.caught.Store(1)
	timer := time.NewTicker(gatePoll)
	defer timer.Stop()
	for {
		switch at.order.Load() {
		case goOn:
			return true
		case die:
			return false
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return true
		}
	}
}

// die ends the worker as if its process were killed: it releases nothing. A new worker with a new lock object takes
// its place. If this lock object cannot be opened, die sets w.err, and the run is invalid.
func (w *worker) die(key int32, hold history.ID) (outcome history.Outcome, reason history.Reason, told bool) {
	now := w.clock.Now()
	crash := history.Op{Kind: history.Crash, Key: key, Hold: hold, Call: now, Outcome: history.OK}
	w.grant.mark(crash)
	w.lane.Mark(&crash)
	w.enter()
	_ = w.lock.Close() // the error does not matter: the worker is dead
	lock, err := w.group.reopen(w.number)
	w.leave()
	w.lock, w.err = lock, err
	w.group.Locks[w.number] = w.lock
	return history.Failed, history.Crashed, false
}

// reopen opens a lock object for the worker that replaces a dead one.
func (c *Workers) reopen(worker int) (lock locks.Lock, err error) {
	if c.Reopen == nil {
		err = errors.New("there is no way to open its lock again")
	} else {
		lock, err = c.Reopen(worker)
	}
	if err != nil {
		return nil, fmt.Errorf("take the place of worker %d, which died: %w", c.Shape.First+worker, err)
	}
	return lock, nil
}
