package wire

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strconv"
	"time"

	"hammerlock/history"
)

// Limits. Data beyond maxKept, maxArgs, maxValues or maxQueued is not kept. Data beyond any other limit is an error.
// The size of a buffer is chunkSize.
const (
	chunkSize = 16 << 10
	maxKept   = 256  // bytes of a text; a longer text is replaced by its digest
	maxScript = 8192 // bytes of a script's text
	maxArgs   = 4096 // arguments of a command that are kept
	maxTexts  = 8    // texts of scripts that a connection keeps
	maxValues = 64   // values of a reply that are kept
	maxQueued = 4096 // values of a reply to EXEC that are kept
	maxHeader = 32   // bytes of a line that announces a size
	maxInline = 64 << 10
	maxDepth  = 512
	maxLength = math.MaxInt32 // number of items of an aggregate
	maxBulk   = 1 << 40
)

var errProtocol = errors.New("not understood as RESP")

// errUnparsed ends the parsing of a connection. Its bytes are then forwarded unchanged.
var errUnparsed = errors.New("not to be parsed")

// flow is one direction of a connection, from which parsers read values. Before it waits for more bytes, it forwards
// all complete values unchanged. It holds back the first part of a value until the value is complete or fills the
// buffer.
type flow struct {
	from    io.Reader
	to      io.Writer
	muted   bool   // nothing more is forwarded
	refused bool   // a write to the other side failed
	before  func() // called before bytes are forwarded; may be nil
	long    func() // called when a part of an incomplete value is about to be forwarded; may be nil

	buf             []byte
	sent, seen, end int    // buf[sent:end] was not forwarded, buf[seen:end] was not parsed
	start           int    // start of the current value
	torn            bool   // a part of the current value was already forwarded
	dropped         int64  // number of bytes that were removed from buf so far
	part            []byte // unfinished line
	read            bool   // bytes came since the last stamp
}

func newFlow(from io.Reader, to io.Writer) *flow {
	return &flow{from: from, to: to, buf: make([]byte, chunkSize)}
}

// place returns the number of bytes parsed so far.
func (f *flow) place() int64 { return f.dropped + int64(f.seen) }

// done marks the current value as complete.
func (f *flow) done() { f.start, f.torn = f.seen, false }

// more waits for more bytes to parse. Before that, it forwards the complete values.
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
		f.read, err = true, nil // the next Read returns the error again
	}
	return err
}

// stamp returns the time of a value. All values from one read came together, so only the first one asks for the time.
func (f *flow) stamp(c *history.Clock) time.Duration {
	if f.read {
		f.read = false
		return c.Stamp()
	}
	return c.Next()
}

// shift removes the bytes that were both parsed and forwarded.
func (f *flow) shift() {
	n := min(f.sent, f.seen)
	copy(f.buf, f.buf[n:f.end])
	f.start, f.sent, f.seen, f.end = max(f.start-n, 0), f.sent-n, f.seen-n, f.end-n
	f.dropped += int64(n)
}

// need waits until n bytes can be parsed. n must be less than the size of the buffer.
func (f *flow) need(n int) error {
	for f.end-f.seen < n {
		if err := f.more(); err != nil {
			return err
		}
	}
	return nil
}

// line reads a line of at most the given length, and returns it without CR and LF. The result is valid until the next
// call.
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

// size reads a line that announces a size, such as "$5".
func (f *flow) size(sign byte) (int64, error) {
	if n, after := announced(f.buf[f.seen:f.end], sign); after > 0 {
		f.seen += after
		return n, nil
	}
	line, err := f.line(maxHeader)
	if err != nil {
		return 0, err
	}
	if len(line) < 3 || line[0] != sign || line[len(line)-1] != '\r' {
		return 0, errProtocol
	}
	return number(line[1 : len(line)-1])
}

// announced is a fast parser for a size of a few digits, as nearly all are, at the beginning of b. after is the index
// of the first byte after that line; 0 = the line is longer, incomplete or wrong.
func announced(b []byte, sign byte) (n int64, after int) {
	if len(b) == 0 || b[0] != sign {
		return 0, 0
	}
	for i, c := range b[1:min(len(b), 8)] {
		switch {
		case '0' <= c && c <= '9':
			n = 10*n + int64(c-'0')
		case c == '\r' && i > 0 && i+2 < len(b) && b[i+2] == '\n':
			return n, i + 3
		default:
			return 0, 0
		}
	}
	return 0, 0
}

func number(b []byte) (int64, error) {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n > maxBulk {
		return 0, errProtocol
	}
	return n, nil
}

// each calls the function take with the next bytes, as they arrive. The argument left is the number of these bytes.
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

// text reads a string of the given size and appends it to b; of a long string it appends the digest. Like servers, it
// ignores the two bytes after the string.
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

// word appends a string to b; of a long string it appends the digest.
func word(b, text []byte) []byte {
	if len(text) <= maxKept {
		return append(b, text...)
	}
	sum := sha1.Sum(text)
	return digested(b, sum[:], int64(len(text)))
}

// pass forwards the bytes of buf up to an index.
func (f *flow) pass(upTo int) error {
	if upTo <= f.sent {
		return nil
	}
	b := f.buf[f.sent:upTo]
	f.sent = upTo
	_, err := f.Write(b)
	return err
}

func (f *flow) Write(b []byte) (int, error) {
	if f.before != nil {
		f.before()
	}
	if f.muted {
		return len(b), nil
	}
	n, err := f.to.Write(b)
	f.refused = f.refused || err != nil
	return n, err
}

// replace forwards other bytes instead of the value that was just read. No part of that value may have been forwarded.
func (f *flow) replace(b string) error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	f.sent = f.seen
	_, err := f.Write([]byte(b))
	return err
}

// rest forwards the remaining bytes after the parsing has ended with the given error. If that is errUnparsed, it
// copies until the connection ends.
func (f *flow) rest(err error) error {
	switch {
	case errors.Is(err, errUnparsed):
		if err = f.pass(f.end); err == nil {
			_, err = io.Copy(f, f.from)
		}
	case errors.Is(err, io.EOF): // the bytes may end within a value
		err = f.pass(f.end)
	}
	return err
}
