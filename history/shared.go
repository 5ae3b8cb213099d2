package history

import (
	"sync/atomic"
	"unsafe"
)

// head precedes the slots of a lane in shared memory. The writer's field and the reader's fields are in
// different cache lines.
type head struct {
	written atomic.Uint64
	_       [120]byte // two lines, because a processor fetches lines in pairs
	taken   atomic.Uint64
	stalls  atomic.Uint64
	_       [112]byte
}

// LaneSize is the memory in bytes for a lane with that many slots; it is a multiple of 8.
func LaneSize(slots int) int {
	return int(unsafe.Sizeof(head{})) + powerOfTwo(slots)*int(unsafe.Sizeof(Op{}))
}

// NewLaneIn makes a lane in memory that another process may have mapped too: LaneSize(slots) bytes, aligned to 8 and
// zeroed before the first lane is made there. One process writes; another makes a lane with the same arguments for a
// Merge. Both run the same program. Published operations and the open call survive the writer's process. The writer
// does not wake the reader when the ring fills up, so the reader must drain it often enough. The memory must stay
// mapped while a lane uses it.
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
