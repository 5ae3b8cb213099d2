package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"hammerlock/history"
)

// Point is a place in a visit where a fault may take hold of the worker.
type Point uint32

// The points.
const (
	Nowhere Point = iota
	Granted       // right after a grant was acknowledged
	Loaded        // between load and store
	Between       // between the two commands of a lock that needs two
)

var points = [...]string{"nowhere", "granted", "loaded", "between"}

// String is the point's name on the command line.
func (p Point) String() string { return points[p] }

// AnyKey lets a gate catch whoever comes by.
const AnyKey = -1

// Gate stops one worker at a time at a point, until somebody says how it goes on. It may lie in memory that the
// suite shares with its worker processes.
type Gate struct{ words *gateWords }

type gateWords struct {
	armed  atomic.Uint32 // the point; 0 lets everybody pass
	key    atomic.Int32
	order  atomic.Uint32
	worker atomic.Int32 // who was caught
	page   atomic.Int32 // where
	_      uint32
	hold   atomic.Uint64 // with which hold; 0 if it has none yet
	caught atomic.Uint32 // 1 when the three above are written
	_      uint32
}

// GateSize is the memory that a gate needs, in bytes.
const GateSize = int(unsafe.Sizeof(gateWords{}))

// The orders to a worker that was caught.
const (
	wait uint32 = iota
	goOn
	die
)

// NewGate makes a gate.
func NewGate() *Gate { return &Gate{new(gateWords)} }

// GateIn is the gate in memory that begins with GateSize bytes, zero at first, at a multiple of eight.
func GateIn(memory []byte) (*Gate, error) {
	if len(memory) < GateSize || uintptr(unsafe.Pointer(unsafe.SliceData(memory)))%8 != 0 {
		return nil, fmt.Errorf("a gate needs %d bytes at a multiple of eight", GateSize)
	}
	return &Gate{(*gateWords)(unsafe.Pointer(unsafe.SliceData(memory)))}, nil
}

// Caught is a worker that stands at a point.
type Caught struct {
	Worker int32
	Key    int32
	Hold   history.ID // 0 if it has none yet
	gate   *Gate
}

// gatePoll is how often either side looks whether the other has moved.
const gatePoll = 100 * time.Microsecond

// ErrNobody says that no worker came by.
var ErrNobody = errors.New("no worker came by")

// Catch stops the next worker that comes by the point with the key (or AnyKey) and returns when it stands. One
// worker can be caught at a time.
func (g *Gate) Catch(ctx context.Context, p Point, key int32) (*Caught, error) {
	w := g.words
	w.caught.Store(0)
	w.order.Store(wait)
	w.key.Store(key)
	w.armed.Store(uint32(p))
	timer := time.NewTicker(gatePoll)
	defer timer.Stop()
	for w.caught.Load() == 0 {
		select {
		case <-timer.C:
		case <-ctx.Done():
			if w.armed.CompareAndSwap(uint32(p), 0) {
				return nil, fmt.Errorf("%w %s: %w", ErrNobody, p, context.Cause(ctx))
			}
			ctx = context.WithoutCancel(ctx) // somebody is just being caught
		}
	}
	return &Caught{Worker: w.worker.Load(), Key: w.page.Load(), Hold: history.ID(w.hold.Load()), gate: g}, nil
}

// Go lets the worker go on.
func (c *Caught) Go() { c.gate.words.order.Store(goOn) }

// Die ends the worker where it stands: it gives nothing back.
func (c *Caught) Die() { c.gate.words.order.Store(die) }

// pass is called by a worker at a point. It tells whether the worker goes on.
func (g *Gate) pass(ctx context.Context, p Point, worker, key int32, hold history.ID) bool {
	w := g.words
	if w.armed.Load() != uint32(p) {
		return true
	}
	if k := w.key.Load(); k != AnyKey && k != key || !w.armed.CompareAndSwap(uint32(p), 0) {
		return true
	}
	w.worker.Store(worker)
	w.page.Store(key)
	w.hold.Store(uint64(hold))
	w.caught.Store(1)
	timer := time.NewTicker(gatePoll)
	defer timer.Stop()
	for {
		switch w.order.Load() {
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
