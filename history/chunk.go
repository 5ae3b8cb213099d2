package history

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// A native file is a magic number, which ends in the version, and chunks: the header, operations and notes in the order
// in which they happened, and the end. FORMAT.md describes every byte.
const (
	magic      = "\x89hist\r\n\x01"
	marker     = "\x89chk"
	headSize   = 24
	chunkSize  = 64 << 10 // of operations, about
	maxPayload = 1 << 20  // of any chunk, so that a corrupt length allocates no memory
	maxNote    = 64 << 10
)

// The types of chunk.
const (
	headerChunk = iota + 1
	opsChunk
	noteChunk
	endChunk
	faultChunk
)

var errNote = fmt.Errorf("a text of more than %d bytes", maxNote)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatError says where a file is wrong: in a native file the byte, in JSON lines the line.
type formatError struct {
	Offset int64 // in bytes from the start of the file
	Line   int   // from 1; 0 for a native file
	What   string
}

// Error gives the position and what is wrong there.
func (e *formatError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.What)
	}
	return fmt.Sprintf("byte %d: %s", e.Offset, e.What)
}

// chunkHead stands before a chunk's payload: marker, type and sequence number, length and checksum of the payload, and
// a checksum of the head itself, so that the length can be trusted.
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
	Partial string `json:"partial"`           // why the rest is missing; empty if nothing is
	Allowed bool   `json:"allowed,omitempty"` // the plan allowed that to be missing
	Ops     int    `json:"ops"`
	// The bound of the clocks, if it was known only at the end; without a Slack that of the header counts.
	Slack  time.Duration `json:"slack_ns,omitempty"`
	Doubts []Doubt       `json:"doubts,omitempty"`

	Measured *Measured `json:"measured,omitempty"`
}
