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

// Point is a place in a visit at which a fault can stop the worker.
type Point uint32

// The points.
const (
	_       Point = iota
	Refused       // right after a refused try, before the wait for the next one
	Granted       // right after a grant was acknowledged
	Loaded        // between load and store
	Between       // between two commands of a lock that need to be one
)

var points = [...]string{"nowhere", "refused", "granted", "loaded", "between"}

// String is the point's name on the command line.
func (p Point) String() string { return points[p] }

// FindPoint returns the point with that name.
func FindPoint(name string) (Point, bool) {
	i := slices.Index(points[:], name)
	return Point(max(i, 0)), i > 0
}

// AnyKey lets a gate catch a worker with any key.
const AnyKey = -1

// Gate stops one worker at a time at a point, until the fault releases or kills it. It may lie in memory that the suite
// shares with its worker processes.
type Gate struct {
	words *gateWords
	turn  int // only Catch uses it
}

// gateWords has a slot for each of the last caught workers: when the next worker is caught, the previous one may not
// have gone on yet, or its process may be stopped.
type gateWords struct {
	armed  atomic.Uint32 // the slot for the next worker to catch, from 1; 0 catches none
	_      uint32
	places [16]place
}

type place struct {
	point  atomic.Uint32
	key    atomic.Int32
	order  atomic.Uint32
	caught atomic.Uint32 // 1 once the next three fields are written
	worker atomic.Int32
	page   atomic.Int32
	hold   atomic.Uint64 // 0 before its first hold
}

// The orders to a caught worker.
const (
	wait uint32 = iota
	goOn
	die
)

// NewGate makes a gate.
func NewGate() *Gate { return &Gate{words: new(gateWords)} }

// GateIn returns the gate in a memory that is large enough, zeroed, and aligned to eight bytes.
func GateIn(memory []byte) (*Gate, error) {
	words, err := over[gateWords](memory)
	return &Gate{words: words}, err
}

// over interprets memory that is shared with other processes as a value.
func over[T any](memory []byte) (*T, error) {
	value := (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
	if size := unsafe.Sizeof(*value); uintptr(len(memory)) < size || uintptr(unsafe.Pointer(value))%8 != 0 {
		return nil, fmt.Errorf("shared memory for %T needs %d bytes at a multiple of eight", value, size)
	}
	return value, nil
}

// Caught is a worker that stopped at a point.
type Caught struct {
	Worker int32
	Key    int32
	Hold   history.ID // 0 before its first hold
	// Elsewhere sends the order to a worker on another machine (true = die); nil = the worker is on this machine.
	Elsewhere func(die bool)
	at        *place
}

// gatePoll is how often each side checks the other's state.
const gatePoll = 100 * time.Microsecond

// ErrNobody means that no worker came to the point in time.
var ErrNobody = errors.New("no worker came by")

// Catch stops the next worker that reaches the point with the key (or AnyKey) and returns when it has stopped. Only one
// goroutine may call it at a time.
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
			// A worker is being caught at this moment, unless its process was killed just now.
			var cancel context.CancelFunc
			late = true
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
		}
	}
	return &Caught{Worker: at.worker.Load(), Key: at.page.Load(), Hold: history.ID(at.hold.Load()), at: at}, nil
}

// Go lets the worker go on.
func (c *Caught) Go() { c.order(goOn) }

// Die ends the worker where it stands, without a release.
func (c *Caught) Die() { c.order(die) }

func (c *Caught) order(what uint32) {
	if c.Elsewhere != nil {
		c.Elsewhere(what == die)
		return
	}
	c.at.order.CompareAndSwap(wait, what)
}

// Pause returns the function that a lock calls between two commands that need to be one. A worker of the crew stops
// there if it is caught, and dies if ordered to.
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

// pass is called by a worker at a point. It returns whether the worker goes on.
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

// die ends the worker as a killed process ends: nothing is released. A new worker takes its place. If none can, the run
// is invalid.
func (w *worker) die(key int32, hold history.ID) (outcome history.Outcome, reason history.Reason, told bool) {
	now := w.clock.Now()
	crash := history.Op{Kind: history.Crash, Key: key, Hold: hold, Call: now, Outcome: history.OK}
	w.grant.mark(crash)
	w.lane.Mark(&crash)
	w.enter()
	_ = w.lock.Close() // no caller could act on its error
	lock, err := w.group.reopen(w.number)
	w.leave()
	w.lock, w.err = lock, err
	w.group.Locks[w.number] = w.lock
	return history.Failed, history.Crashed, false
}

// reopen opens a lock for the worker that replaces one that died.
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
