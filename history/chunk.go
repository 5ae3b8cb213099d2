package history

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// A native file begins with a magic number, which ends in the version. Then come chunks: the header, operations and
// notes in the order of time, and the end. FORMAT.md describes every byte.
const (
	magic      = "\x89hist\r\n\x01"
	marker     = "\x89chk"
	headSize   = 24
	chunkSize  = 64 << 10 // approximate size of the operations
	maxPayload = 1 << 20  // limit for every chunk: a corrupt length must not allocate memory
	maxNote    = 64 << 10
)

const (
	headerChunk = iota + 1
	opsChunk
	noteChunk
	endChunk
	faultChunk
)

var errNote = fmt.Errorf("a text of more than %d bytes", maxNote)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatError is a format error with its position: a byte in a native file, a line in JSON lines.
type formatError struct {
	Offset int64 // in bytes from the start of the file
	Line   int   // from 1; 0 for a native file
	What   string
}

func (e *formatError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.What)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.What)
}

// chunkHead precedes a chunk's payload. On disk it is the marker, these fields, and a checksum of the head itself, so
// that the length can be trusted.
type chunkHead struct {
	kind     uint32
	sequence uint32
	length   uint32
	checksum uint32
}

func (h chunkHead) put(b []byte) {
	copy(b, marker)
	binary.LittleEndian.PutUint32(b[4:], h.kind)
	binary.LittleEndian.PutUint32(b[8:], h.sequence)
	binary.LittleEndian.PutUint32(b[12:], h.length)
	binary.LittleEndian.PutUint32(b[16:], h.checksum)
	binary.LittleEndian.PutUint32(b[20:], crc32.Checksum(b[:20], castagnoli))
}

func parseHead(b []byte) (h chunkHead, ok bool) {
	if len(b) < headSize || string(b[:4]) != marker ||
		binary.LittleEndian.Uint32(b[20:]) != crc32.Checksum(b[:20], castagnoli) {
		return h, false
	}
	h = chunkHead{
		kind:     binary.LittleEndian.Uint32(b[4:]),
		sequence: binary.LittleEndian.Uint32(b[8:]),
		length:   binary.LittleEndian.Uint32(b[12:]),
		checksum: binary.LittleEndian.Uint32(b[16:]),
	}
	return h, h.length <= maxPayload
}

// end is the payload of the last chunk.
type end struct {
	Partial string `json:"partial"`           // why the rest is missing; empty = nothing is missing
	Allowed bool   `json:"allowed,omitempty"` // the user allowed the rest to be missing
	Ops     int    `json:"ops"`
	// Slack and Doubts are the clock bounds that were measured at the end of the run. If Slack is 0, the bounds in
	// the header apply.
	Slack  time.Duration `json:"slack_ns,omitempty"`
	Doubts []Doubt       `json:"doubts,omitempty"`

	Measured *Measured `json:"measured,omitempty"`
}
