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
	line []byte // how the present line begins
	long int    // bytes of the present line
	skip int    // bytes of a text that are still to come
	due  int    // elements of the present answer that are still to come
	size int    // bytes that it has announced
}

// lineHead is as much of a line as its type and its number need.
const lineHead = 24

// take takes in what was read.
func (b *bound) take(read []byte) error {
	for len(read) > 0 {
		if n := min(b.skip, len(read)); n > 0 {
			b.skip, read = b.skip-n, read[n:]
			continue
		}
		part, _, whole := bytes.Cut(read, []byte{'\n'})
		if whole {
			part = read[:len(part)+1]
		}
		b.line = append(b.line, part[:min(len(part), lineHead-min(len(b.line), lineHead))]...)
		if b.long, read = b.long+len(part), read[len(part):]; b.long > mostLine {
			return fmt.Errorf("%w: a line of more than %d bytes", errTooMuch, mostLine)
		}
		if whole {
			if err := b.announced(); err != nil {
				return err
			}
			b.line, b.long = b.line[:0], 0
		}
	}
	return nil
}

// announced takes in a line: a value, or how much of it follows.
func (b *bound) announced() error {
	if b.due == 0 {
		b.due, b.size = 1, 0
	}
	b.due--
	n, err := strconv.Atoi(string(bytes.TrimSpace(b.line[1:])))
	if err != nil || n < 0 || b.line[0] == ':' {
		return nil // a value, or none
	}
	texts, elements := 0, 0
	switch b.line[0] {
	case '$', '=', '!':
		texts = 1
	case '*', '~', '>':
		elements = 1
	case '%', '|':
		elements = 2
	}
	if n > mostAnswer || b.size+n*(texts+elements*perElement) > mostAnswer {
		return fmt.Errorf("%w: %.20q", errTooMuch, b.line)
	}
	b.size += n * (texts + elements*perElement)
	if b.due += n * elements; texts > 0 {
		b.skip = n + len("\r\n")
	}
	if b.line[0] == '|' {
		b.due++ // the value that the attributes are of
	}
	return nil
}
