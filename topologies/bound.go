package topologies

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Client libraries make room for what an answer announces before it comes. Servers of others are not trusted with that.
const (
	mostAnswer = 64 << 20 // bytes of one answer, with those for its elements
	perElement = 64
	mostLine   = 1 << 20
)

// errTooMuch is the error of a connection whose server announces more than any answer has that the suite asks for.
var errTooMuch = errors.New("the server announces an answer that is too large")

// bound follows the answers on a connection, in RESP2 or RESP3, and counts what they announce. The zero value is ready.
type bound struct {
	line []byte // the present one, so far
	skip int    // bytes of a text that are still to come
	due  int    // elements of the present answer that are still to come
	size int    // bytes that it has announced
}

// take takes in what was read.
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

// elements are how many belong to each that an array, a set, a push, a map or attributes announce.
var elements = map[byte]int{'*': 1, '~': 1, '>': 1, '%': 2, '|': 2}

// announced takes in a line, which is a value, or says how much of it follows; it is false if that is too much.
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
		b.due++ // the value that the attributes are of
	}
	return b.size <= mostAnswer
}
