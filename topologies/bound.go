package topologies

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// The client library allocates memory for a reply as soon as it reads the reply's length. Attached servers may
// announce any length, so the suite limits it.
const (
	mostAnswer = 64 << 20 // limit of one reply: the bytes of its texts, plus perElement for each element
	perElement = 64
	mostLine   = 1 << 20
)

// errTooMuch ends a connection whose server announces a longer reply than the suite can have asked for.
var errTooMuch = errors.New("the server announces an answer that is too large")

// bound parses the replies on a connection (RESP2 or RESP3) and adds up the announced lengths. The zero value is
// ready to use.
type bound struct {
	line []byte // the part of the current line that has arrived
	skip int    // bytes of a bulk string that have not arrived
	due  int    // elements of the current reply that have not arrived
	size int    // bytes that the current reply has announced so far
}

// take parses bytes that were read from the connection. It returns errTooMuch if they announce too long a reply.
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

// elements maps the first byte of an aggregate reply (array, set, push, map, attributes) to the number of values in
// each of its entries. An entry of a map has two: a key and a value.
var elements = map[byte]int{'*': 1, '~': 1, '>': 1, '%': 2, '|': 2}

// announced parses a line of a reply: a simple value, or a length. It returns false if the announced reply is too
// long.
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
		return true // a simple value, or null
	case n > mostAnswer:
		return false
	case text:
		b.skip, b.size = n+len("\r\n"), b.size+n
	default:
		b.due, b.size = b.due+n*each, b.size+n*each*perElement
	}
	if kind == '|' {
		b.due++ // attributes come before the value that they describe
	}
	return b.size <= mostAnswer
}
