package wire

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"hash"
	"math"
	"strconv"
)

// How much is kept of what is read, and how much is too much for a value.
const (
	maxKept   = 256  // bytes of a text; of a longer one its digest
	maxArgs   = 4096 // arguments of a command
	maxValues = 64   // values of a reply
	maxQueued = 4096 // values of a reply to EXEC
	maxHeader = 32   // bytes of a line that announces a size
	maxInline = 64 << 10
	maxDepth  = 512
	maxLength = math.MaxInt32 // of an aggregate
	maxBulk   = 1 << 40
)

var errProtocol = errors.New("not understood as RESP")

// text takes in a string piece by piece, and keeps the string or its digest.
type text struct {
	kept []byte
	size int64
	long hash.Hash // of all, when it is too long to be kept
}

func (t *text) reset() { t.kept, t.size, t.long = t.kept[:0], 0, nil }

func (t *text) add(b []byte) {
	t.size += int64(len(b))
	switch {
	case t.size <= maxKept:
		t.kept = append(t.kept, b...)
		return
	case t.long == nil:
		t.long = sha1.New()
		t.long.Write(t.kept)
	}
	t.long.Write(b)
}

// value is the kept text; it is valid until the next reset.
func (t *text) value() []byte {
	if t.long == nil {
		return t.kept
	}
	t.kept = append(t.kept[:0], "sha1:"...)
	t.kept = hex.AppendEncode(t.kept, t.long.Sum(nil))
	t.kept = append(t.kept, ':')
	return strconv.AppendInt(t.kept, t.size, 10)
}

// number reads a decimal number as servers do: no plus, no leading zeros, no spaces.
func number(b []byte) (n int64, ok bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int64(d-'0')
	}
	if len(digits) < len(b) {
		n = -n
	}
	return n, true
}

// header collects a line that comes in pieces.
type header struct{ part []byte }

// line returns the line that ends in b, without its last byte, and how many bytes of b belong to it; nil if none ends.
func (h *header) line(b []byte, most int) (line []byte, n int, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		if h.part = append(h.part, b...); len(h.part) > most {
			return nil, len(b), errProtocol
		}
		return nil, len(b), nil
	}
	if line = b[:i]; len(h.part) > 0 {
		line = append(h.part, line...)
		h.part = h.part[:0]
	}
	if len(line) > most {
		return nil, i + 1, errProtocol
	}
	return line, i + 1, nil
}

// first is the first byte of the line under way, which goes on with b.
func (h *header) first(b byte) byte {
	if len(h.part) > 0 {
		return h.part[0]
	}
	return b
}
