package history

import (
	"sync/atomic"
	"unsafe"
)

// head is what a lane in shared memory has before its slots: the writer's line, and the reader's.
type head struct {
	written atomic.Uint64
	_       [120]byte // two lines, because a processor fetches lines in pairs
	taken   atomic.Uint64
	stalls  atomic.Uint64
	_       [112]byte
}

// LaneSize is how many bytes of memory a lane with that many slots takes; it is a multiple of 8.
func LaneSize(slots int) int {
	return int(unsafe.Sizeof(head{})) + powerOfTwo(slots)*int(unsafe.Sizeof(Op{}))
}

// NewLaneIn makes a lane over memory that another process may have mapped too: LaneSize(slots) bytes, aligned to 8 and
// zeroed before the first lane is made over them. A process writes a lane over it, and another process gives a lane
// with the same arguments to a Merge; both run the same program. Published operations and the open call outlive the
// writer's process. The writer wakes nobody when the ring fills up: the reader must drain it often enough. The memory
// must stay mapped for as long as a lane over it is used.
func NewLaneIn(mem []byte, clock *Clock, n int, worker int32, slots int) *Lane {
	if len(mem) < LaneSize(slots) {
		panic("history: too little memory for a lane")
	}
	base := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(base)%unsafe.Alignof(Op{}) != 0 {
		panic("history: a lane's memory must be aligned to 8 bytes")
	}
	h := (*head)(base)
	l := newLane(clock, n, worker, slots, unsafe.Add(base, unsafe.Sizeof(head{})))
	l.written, l.taken, l.stalls = &h.written, &h.taken, &h.stalls
	l.room = h.taken.Load() + uint64(slots)
	return l
}
