package wire

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strconv"
)

// Limits of what is kept of a value, and of what is an error.
const (
	chunkSize = 16 << 10
	maxKept   = 256  // bytes of a text; a longer one is replaced by its digest
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

// errUnparsed ends the parsing of a connection, whose bytes are then forwarded as they are.
var errUnparsed = errors.New("not to be parsed")

// flow is one direction of a connection. Parsers read values from it. Before it waits for more bytes, it forwards all
// complete values unchanged. The beginning of a value is held back until the value is complete, or until it fills the
// buffer.
type flow struct {
	from    io.Reader
	to      io.Writer
	muted   bool   // nothing more is forwarded
	refused bool   // the other side accepts nothing any more
	long    func() // called when the beginning of a value is forwarded; may be nil

	buf             []byte
	sent, seen, end int    // buf[sent:end] was not forwarded, buf[seen:end] not parsed
	start           int    // start of the current value
	torn            bool   // the beginning of the current value was forwarded
	dropped         int64  // number of bytes that were removed from the buffer
	part            []byte // of a line
}

func newFlow(from io.Reader, to io.Writer) *flow {
	return &flow{from: from, to: to, buf: make([]byte, chunkSize)}
}

// place is the number of bytes that were parsed.
func (f *flow) place() int64 { return f.dropped + int64(f.seen) }

// done ends the current value.
func (f *flow) done() { f.start, f.torn = f.seen, false }

// more forwards complete values, and reads.
func (f *flow) more() error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	f.shift()
	if f.torn || f.end == len(f.buf) {
		if f.torn = true; f.long != nil {
			f.long()
		}
		if err := f.pass(f.end); err != nil {
			return err
		}
		f.shift()
	}
	n, err := f.from.Read(f.buf[f.end:])
	if f.end += n; n > 0 {
		err = nil // it comes again
	}
	return err
}

// shift removes bytes that were parsed and forwarded.
func (f *flow) shift() {
	n := min(f.sent, f.seen)
	copy(f.buf, f.buf[n:f.end])
	f.start, f.sent, f.seen, f.end = max(f.start-n, 0), f.sent-n, f.seen-n, f.end-n
	f.dropped += int64(n)
}

// need waits until n bytes, fewer than the buffer takes, can be parsed.
func (f *flow) need(n int) error {
	for f.end-f.seen < n {
		if err := f.more(); err != nil {
			return err
		}
	}
	return nil
}

// line reads a line without its last byte. It is valid until the next call.
func (f *flow) line(most int) (line []byte, err error) {
	f.part = f.part[:0]
	for {
		i := bytes.IndexByte(f.buf[f.seen:f.end], '\n')
		if i >= 0 {
			line = f.buf[f.seen : f.seen+i]
			if f.seen += i + 1; len(f.part) > 0 {
				f.part = append(f.part, line...)
				line = f.part
			}
		} else {
			f.part = append(f.part, f.buf[f.seen:f.end]...)
			f.seen = f.end
		}
		if max(len(line), len(f.part)) > most {
			return nil, errProtocol
		}
		if i >= 0 {
			return line, nil
		}
		if err := f.more(); err != nil {
			return nil, err
		}
	}
}

// size reads a line that announces a size.
func (f *flow) size(sign byte) (int64, error) {
	line, err := f.line(maxHeader)
	if err != nil {
		return 0, err
	}
	if len(line) < 3 || line[0] != sign || line[len(line)-1] != '\r' {
		return 0, errProtocol
	}
	return number(line[1 : len(line)-1])
}

func number(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n > maxBulk {
		return 0, errProtocol
	}
	return n, nil
}

// each passes the next bytes to a function as they come.
func (f *flow) each(left int64, take func([]byte)) error {
	for left > 0 {
		if err := f.need(1); err != nil {
			return err
		}
		n := int(min(left, int64(f.end-f.seen)))
		take(f.buf[f.seen : f.seen+n])
		f.seen, left = f.seen+n, left-int64(n)
	}
	return nil
}

// text appends a string to b, or the digest of a long one. Like servers, it ignores the two bytes after the string.
func (f *flow) text(b []byte, size int64) ([]byte, error) {
	if size <= maxKept {
		err := f.need(int(size) + 2)
		if err == nil {
			b = append(b, f.buf[f.seen:f.seen+int(size)]...)
			f.seen += int(size) + 2
		}
		return b, err
	}
	sum := sha1.New()
	if err := f.each(size, func(piece []byte) { sum.Write(piece) }); err != nil {
		return b, err
	}
	return digested(b, sum.Sum(nil), size), f.skip(2)
}

func (f *flow) skip(n int64) error { return f.each(n, func([]byte) {}) }

func digested(b, sum []byte, size int64) []byte {
	b = hex.AppendEncode(append(b, "sha1:"...), sum)
	return strconv.AppendInt(append(b, ':'), size, 10)
}

// word appends a string to b, or its digest.
func word(b, text []byte) []byte {
	if len(text) <= maxKept {
		return append(b, text...)
	}
	sum := sha1.Sum(text)
	return digested(b, sum[:], int64(len(text)))
}

// pass forwards the bytes before a place.
func (f *flow) pass(upTo int) error {
	if upTo <= f.sent {
		return nil
	}
	b := f.buf[f.sent:upTo]
	f.sent = upTo
	_, err := f.Write(b)
	return err
}

// Write forwards bytes, unless the flow is muted.
func (f *flow) Write(b []byte) (int, error) {
	if f.muted {
		return len(b), nil
	}
	n, err := f.to.Write(b)
	f.refused = f.refused || err != nil
	return n, err
}

// replace forwards other bytes in place of the value that just ended, of which nothing was forwarded.
func (f *flow) replace(b string) error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	f.sent = f.seen
	_, err := f.Write([]byte(b))
	return err
}

// rest forwards all bytes after the last value that was parsed, if possible.
func (f *flow) rest(err error) error {
	switch {
	case errors.Is(err, errUnparsed):
		if err = f.pass(f.end); err == nil {
			_, err = io.Copy(f, f.from)
		}
	case errors.Is(err, io.EOF): // perhaps within a value
		err = f.pass(f.end)
	}
	return err
}
