package history

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Lane is the log of one goroutine: a ring with one writer and one reader, without locks. The writer
// calls Call and Return; the reader, a Merge, takes what was returned and sees what is still open.
type Lane struct {
	// Due is copied into every operation that is opened; the writer sets it once a visit.
	Due time.Duration

	clock  *Clock
	worker int32
	next   ID
	wake   chan<- struct{}
	state  *laneState
	slots  []Op
}

// laneState is what writer and reader share, each word on a cache line of its own.
type laneState struct {
	published atomic.Uint64
	_         [56]byte
	taken     atomic.Uint64
	_         [56]byte
	open      atomic.Int64 // the call of the open operation; 0 = none is open
	stalls    atomic.Uint64
	_         [48]byte
}

// NewLane makes lane number n, for one worker, with room for slots operations (a power of two) between
// two visits of the reader. The writer sends on wake, without waiting, when half of the room is used.
func NewLane(clock *Clock, n int, worker int32, slots int, wake chan<- struct{}) *Lane {
	if slots < 2 || slots&(slots-1) != 0 {
		panic("history: a lane's slots must be a power of two")
	}
	return &Lane{
		clock:  clock,
		worker: worker,
		next:   ID(n+1) << idLaneShift,
		wake:   wake,
		state:  &laneState{},
		slots:  make([]Op, slots),
	}
}

// Clock is the clock that stamps the lane's operations.
func (l *Lane) Clock() *Clock { return l.clock }

// Call opens an operation: its call is stamped now, nothing may have been sent before. The operation
// lives in the lane; it is valid until Return.
func (l *Lane) Call(kind Kind, key int32) *Op {
	op := l.slot(kind, key)
	op.Call = l.clock.Stamp()
	l.state.open.Store(int64(op.Call))
	return op
}

// Return stamps the operation's return and publishes it.
func (l *Lane) Return(op *Op) {
	op.Return = l.clock.Stamp()
	l.publish()
}

// Mark records an operation that needed no call: it took from call until now.
func (l *Lane) Mark(kind Kind, key int32, call time.Duration, outcome Outcome, reason Reason) {
	op := l.slot(kind, key)
	l.state.open.Store(int64(call))
	op.Call, op.Outcome, op.Reason = call, outcome, reason
	op.Return = l.clock.Stamp()
	l.publish()
}

// Stalls counts how often the writer had to wait for the reader; each is a flaw of the measurement.
func (l *Lane) Stalls() uint64 { return l.state.stalls.Load() }

func (l *Lane) slot(kind Kind, key int32) *Op {
	n := l.state.published.Load()
	if n-l.state.taken.Load() >= uint64(len(l.slots)) {
		l.state.stalls.Add(1)
		for n-l.state.taken.Load() >= uint64(len(l.slots)) {
			l.signal()
			runtime.Gosched()
		}
	}
	l.next++
	op := &l.slots[n&uint64(len(l.slots)-1)]
	*op = Op{ID: l.next, Worker: l.worker, Kind: kind, Key: key, Due: l.Due}
	return op
}

func (l *Lane) publish() {
	n := l.state.published.Add(1)
	l.state.open.Store(0)
	if n-l.state.taken.Load() == uint64(len(l.slots)/2) {
		l.signal()
	}
}

func (l *Lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
