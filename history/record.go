package history

import (
	"encoding/binary"
	"math/bits"
	"time"
)

// A record is an operation in a chunk. It has four parts:
//  1. eight bytes with the lengths of fifteen numbers, four bits each, and four flags;
//  2. kind, outcome, reason and wake, a byte each;
//  3. the numbers, little endian without leading zeros;
//  4. two bytes of permits, if the acquire is not exclusive.
//
// Times are stored as differences to keep them short.
const (
	recordFields = 15
	recordMin    = 12
	recordMax    = recordMin + 8*recordFields + 2
	recordSlack  = 8 // numbers are written and read as eight bytes whatever their length
)

const (
	hasHold    = 1 << 60
	hasUntil   = 1 << 61
	isOpen     = 1 << 62
	hasPermits = 1 << 63
)

// putRecord writes op at b[p:] and returns the index of the byte after it. The argument prev is the return of the
// operation before it in the chunk.
func putRecord(b []byte, p int, op *Op, prev time.Duration) int {
	var flags, hold, until uint64
	ret, call := zigzag(int64(op.Return-prev)), uint64(op.Return-op.Call)
	if op.Return == Forever {
		flags, ret, call = isOpen, 0, uint64(op.Call)
	}
	if op.Hold != 0 {
		flags, hold = flags|hasHold, uint64(op.ID-op.Hold)
	}
	if op.Until != 0 {
		flags, until = flags|hasUntil, zigzag(int64(op.Until-op.Call))
	}
	b = b[p : p+recordMax+recordSlack]
	b[8], b[9], b[10], b[11] = byte(op.Kind), byte(op.Outcome), byte(op.Reason), byte(op.Woken)
	lane := op.ID >> idLaneShift
	at := recordMin
	at, flags = putNumber(b, at, flags, 0, uint64(lane))
	at, flags = putNumber(b, at, flags, 4, op.ID.Number())
	at, flags = putNumber(b, at, flags, 8, hold)
	at, flags = putNumber(b, at, flags, 12, uint64(op.Seen))
	at, flags = putNumber(b, at, flags, 16, op.Token)
	at, flags = putNumber(b, at, flags, 20, zigzag(op.Fence))
	at, flags = putNumber(b, at, flags, 24, zigzag(op.Value))
	at, flags = putNumber(b, at, flags, 28, ret)
	at, flags = putNumber(b, at, flags, 32, call)
	at, flags = putNumber(b, at, flags, 36, zigzag(int64(op.Call-op.Due)))
	at, flags = putNumber(b, at, flags, 40, until)
	at, flags = putNumber(b, at, flags, 44, zigzag(int64(op.TTL)))
	at, flags = putNumber(b, at, flags, 48, zigzag(int64(op.Worker)+1-int64(lane)))
	at, flags = putNumber(b, at, flags, 52, zigzag(int64(op.Key)))
	at, flags = putNumber(b, at, flags, 56, zigzag(int64(op.Process)))
	if op.Permits != 0 {
		flags |= hasPermits
		binary.LittleEndian.PutUint16(b[at:], op.Permits)
		at += 2
	}
	binary.LittleEndian.PutUint64(b, flags)
	return p + at
}

// record reads the record at b[p:] into op and returns the index of the byte after it. From p on, b must have
// recordMax+recordSlack bytes. The result ok is false if a length in the record is impossible.
func record(b []byte, p int, op *Op, prev time.Duration) (next int, ok bool) {
	b = b[p : p+recordMax+recordSlack]
	flags := binary.LittleEndian.Uint64(b)
	// A length is impossible from 9 on: the upper bit of its four is set together with another one.
	high := flags & 0x0888888888888888
	if (high>>1|high>>2|high>>3)&flags != 0 {
		return p, false
	}
	var n [recordFields]uint64
	at := recordMin
	for i := range n {
		size := flags >> (4 * i) & 15
		n[i] = binary.LittleEndian.Uint64(b[at:]) & masks[size]
		at += int(size)
	}
	id := ID(n[0]<<idLaneShift | n[1])
	*op = Op{
		ID: id, Seen: ID(n[3]), Token: n[4], Fence: unzigzag(n[5]), Value: unzigzag(n[6]),
		TTL:    time.Duration(unzigzag(n[11])),
		Worker: int32(unzigzag(n[12]) + int64(n[0]) - 1), Key: int32(unzigzag(n[13])), Process: int16(unzigzag(n[14])),
		Kind: Kind(b[8]), Outcome: Outcome(b[9]), Reason: Reason(b[10]), Woken: Wake(b[11]),
	}
	op.Return = prev + time.Duration(unzigzag(n[7]))
	op.Call = op.Return - time.Duration(n[8])
	if flags&isOpen != 0 {
		op.Return, op.Call = Forever, time.Duration(n[8])
	}
	op.Due = op.Call - time.Duration(unzigzag(n[9]))
	if flags&hasHold != 0 {
		op.Hold = id - ID(n[2])
	}
	if flags&hasUntil != 0 {
		op.Until = op.Call + time.Duration(unzigzag(n[10]))
	}
	if flags&hasPermits != 0 {
		op.Permits = binary.LittleEndian.Uint16(b[at:])
		at += 2
	}
	return p + at, op.Permits != 0 || flags&hasPermits == 0
}

var masks = [16]uint64{0, 1<<8 - 1, 1<<16 - 1, 1<<24 - 1, 1<<32 - 1, 1<<40 - 1, 1<<48 - 1, 1<<56 - 1, 1<<64 - 1}

func putNumber(b []byte, at int, flags uint64, shift int, n uint64) (int, uint64) {
	binary.LittleEndian.PutUint64(b[at:], n)
	size := (bits.Len64(n) + 7) >> 3
	return at + size, flags | uint64(size)<<shift
}

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }
