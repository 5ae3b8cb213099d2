package history

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// Lane is the log of one goroutine: a ring with one writer and one reader, without locks. The writer calls Call,
// Return and Mark. The reader, a Merge, takes the returned operations and sees the open call.
//
// A run has many lanes, so a lane is no longer in the CPU cache when its worker wakes up. For each record, the
// writer therefore touches few cache lines: one in this struct and two in the ring. A lane in shared memory has its
// counters there, in one more line.
type Lane struct {
	// Due is copied into every new operation; the writer sets it once a visit.
	Due time.Duration

	own     atomic.Uint64  // written points here, unless the lane is in shared memory
	written *atomic.Uint64 // twice the number of published operations, plus one while a call is open
	room    uint64         // number of operations since the start for which the ring is known to have room
	clock   *Clock
	slots   unsafe.Pointer // array of mask+1 operations
	mask    uint32
	worker  int32
	number  int32

	// Process is copied into every new operation; the writer sets it before the first one.
	Process int16

	slow     bool // the writer announces each return, so that an open call delays no other lane
	_        [65]byte
	taken    *atomic.Uint64 // number of operations that the reader has taken
	stalls   *atomic.Uint64
	wake     chan<- struct{}
	counters [2]atomic.Uint64 // taken and stalls point here, unless the lane is in shared memory

	returning atomic.Bool // true while the writer of a slow lane stamps a return and publishes it
	_         [20]byte
}

// NewLane makes lane number n for one worker. Its ring has room for a number of operations (slots, a power of two) that
// the reader has not yet taken. When half of the room is used, the writer sends on the channel wake, without blocking.
func NewLane(clock *Clock, n int, worker int32, slots int, wake chan<- struct{}) *Lane {
	ring := make([]Op, powerOfTwo(slots))
	l := newLane(clock, n, worker, slots, unsafe.Pointer(&ring[0]))
	l.written, l.taken, l.stalls, l.wake = &l.own, &l.counters[0], &l.counters[1], wake
	return l
}

// NewSlowLane makes a lane for calls that may last for seconds, such as those of faults. An open call there does
// not delay the operations of other lanes. Its writer must end each call with Return or Mark, which cost two more
// stores than in other lanes.
func NewSlowLane(clock *Clock, n int, worker int32, slots int, wake chan<- struct{}) *Lane {
	l := NewLane(clock, n, worker, slots, wake)
	l.slow = true
	return l
}

func newLane(clock *Clock, n int, worker int32, slots int, ring unsafe.Pointer) *Lane {
	return &Lane{clock: clock, number: int32(n), worker: worker, slots: ring, mask: uint32(slots - 1),
		room: uint64(slots)}
}

func powerOfTwo(slots int) int {
	if slots < 2 || slots > 1<<30 || slots&(slots-1) != 0 {
		panic("history: a lane's slots must be a power of two")
	}
	return slots
}

// Worker is the worker of the lane's operations; -1 = any worker.
func (l *Lane) Worker() int32 { return l.worker }

// Clock is the clock of the lane's stamps.
func (l *Lane) Clock() *Clock { return l.clock }

// Call opens an operation and stamps its call. It must be called before anything is sent. The operation is in the
// lane's memory and is valid until Return.
func (l *Lane) Call(kind Kind, key int32) *Op {
	op := l.slot(kind, key)
	op.Call = l.clock.Stamp()
	l.written.Store(l.written.Load() + 1)
	return op
}

// CallAt is Call for a writer that has just read the clock and has sent nothing since. Its reading is used, which
// saves another one. An ordered clock is read in any case.
func (l *Lane) CallAt(kind Kind, key int32, at time.Duration) *Op {
	if l.clock.order != nil {
		return l.Call(kind, key)
	}
	op := l.slot(kind, key)
	op.Call = at
	l.written.Store(l.written.Load() + 1)
	return op
}

// Return stamps and publishes the operation, and returns the stamp.
func (l *Lane) Return(op *Op) time.Duration {
	if l.slow {
		l.returning.Store(true) // before the stamp, see delays
		defer l.returning.Store(false)
	}
	op.Return = l.clock.Stamp()
	l.written.Store(l.written.Load() + 1)
	return op.Return
}

// ReturnAt is Return for a writer that read the clock when the answer came and then kept the operation open. An
// ordered clock is read in any case.
func (l *Lane) ReturnAt(op *Op, at time.Duration) {
	if l.clock.order != nil {
		at = l.clock.Stamp()
	}
	op.Return = at
	l.written.Store(l.written.Load() + 1)
}

// Split turns an open operation into two of the same kind. The first one is published with a given return, between
// its call and now. The second one is open, and its call is 1 ns later.
func (l *Lane) Split(op *Op, at time.Duration) *Op {
	kind, key := op.Kind, op.Key
	op.Return = at
	l.written.Store(l.written.Load() + 1)
	op = l.slot(kind, key)
	op.Call = at + 1
	l.written.Store(l.written.Load() + 1)
	return op
}

// Mark records an event that lasted from its Call until now, without a request. It copies the other fields of its
// argument, except those that the lane sets itself. If the lane has worker -1, the event may be of any worker. Mark
// returns the stamp of the return.
func (l *Lane) Mark(what *Op) time.Duration {
	n := l.next()
	op := l.at(n)
	*op = *what
	op.ID, op.Due, op.Process = l.id(n), l.Due, l.Process
	if l.worker >= 0 {
		op.Worker = l.worker
	}
	l.written.Store(l.written.Load() + 1)
	return l.Return(op)
}

// Next is the ID of the next operation. Only the writer calls it.
func (l *Lane) Next() ID { return l.id(l.written.Load() / 2) }

// Stalls counts how often the writer waited for the reader; each wait distorts the measurement.
func (l *Lane) Stalls() uint64 { return l.stalls.Load() }

func (l *Lane) slot(kind Kind, key int32) *Op {
	n := l.next()
	op := l.at(n)
	*op = Op{} // a literal with all fields would be built elsewhere and copied
	op.ID, op.Worker, op.Kind, op.Key, op.Due, op.Process = l.id(n), l.worker, kind, key, l.Due, l.Process
	return op
}

// next returns the number of the next operation, from 0. If the ring is full, next waits for the reader.
func (l *Lane) next() uint64 {
	n := l.written.Load() / 2
	if size := uint64(l.mask) + 1; n+size/2 >= l.room {
		l.makeRoom(n, size)
	}
	return n
}

func (l *Lane) id(n uint64) ID { return ID(l.number+1)<<idLaneShift | ID(n+1) }

// makeRoom updates the room from the number of operations that the reader has taken. If less than half of the ring
// is free, it wakes the reader. If the ring is full, it waits for the reader.
func (l *Lane) makeRoom(n, size uint64) {
	l.room = l.taken.Load() + size
	if n+size/2 < l.room {
		return
	}
	l.signal()
	if n < l.room {
		return
	}
	l.stalls.Add(1)
	for n >= l.room {
		l.signal()
		runtime.Gosched()
		l.room = l.taken.Load() + size
	}
}

func (l *Lane) at(n uint64) *Op {
	return (*Op)(unsafe.Add(l.slots, (n&uint64(l.mask))*uint64(unsafe.Sizeof(Op{}))))
}

// read returns, to the reader, the number of published operations and the stamp of the open call.
func (l *Lane) read() (published uint64, call time.Duration, open bool) {
	written := l.written.Load()
	if published = written / 2; written%2 == 0 {
		return published, 0, false
	}
	return published, l.at(published).Call, true
}

// delays tells the reader whether the open call may still get a return stamp that is already in the past. The
// reader calls it before it reads the lane. If the answer is false, the reader sees all returns that are stamped
// already, and later returns have later stamps.
func (l *Lane) delays() bool { return !l.slow || l.returning.Load() }

func (l *Lane) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
