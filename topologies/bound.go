package topologies

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// A client library allocates memory for the announced length of an answer before the answer has arrived. A server of
// others may announce anything, so lengths are bounded.
const (
	mostAnswer = 64 << 20 // bytes of one answer, including an estimate for its elements
	perElement = 64
	mostLine   = 1 << 20
)

// errTooMuch ends a connection whose server announces more than any answer that the suite asks for.
var errTooMuch = errors.New("the server announces an answer that is too large")

// bound parses the answers on a connection (RESP2 or RESP3) and adds up the lengths that they announce. The zero value
// is ready.
type bound struct {
	line []byte // the current line, as far as it was read
	skip int    // remaining bytes of a text
	due  int    // remaining elements of the current answer
	size int    // bytes that the current answer has announced
}

// take parses the bytes that were read.
func (b *bound) take(read []byte) error {
	for len(read) > 0 {
		if n := min(b.skip, len(read)); n > 0 {
			b.skip, read = b.skip-n, read[n:]
			continue
		}
		part, rest, whole := bytes.Cut(read, []byte{'\n'})
		if b.line, read = append(b.line, part...), rest; len(b.line) > mostLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errTooMuch, mostLine)
		}
		if whole && !b.announced() {
			return fmt.Errorf("%w: %.20q", errTooMuch, b.line)
		}
		if whole {
			b.line = b.line[:0]
		}
	}
	return nil
}

// elements is the number of elements for each announced entry of an array, a set, a push, a map or attributes.
var elements = map[byte]int{'*': 1, '~': 1, '>': 1, '%': 2, '|': 2}

// announced parses a line: a value, or the length of what follows. It returns false if that is too long.
func (b *bound) announced() bool {
	if b.due == 0 {
		b.due, b.size = 1, 0
	}
	b.due--
	if len(b.line) == 0 {
		return true
	}
	kind, each := b.line[0], elements[b.line[0]]
	n, err := strconv.Atoi(string(bytes.TrimSuffix(b.line[1:], []byte{'\r'})))
	switch text := kind == '$' || kind == '=' || kind == '!'; {
	case err != nil || n < 0 || !text && each == 0:
		return true // a value, or none
	case n > mostAnswer:
		return false
	case text:
		b.skip, b.size = n+len("\r\n"), b.size+n
	default:
		b.due, b.size = b.due+n*each, b.size+n*each*perElement
	}
	if kind == '|' {
		b.due++ // the value to which the attributes belong
	}
	return b.size <= mostAnswer
}
