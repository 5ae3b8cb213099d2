package wire

import (
	"errors"
	"io"
	"net"
)

const chunkSize = 16 << 10

// flow is one direction of a connection. Complete values are passed on at once, as they came; the beginning of a value
// is held until its end comes, or until it fills the buffer.
type flow struct {
	from, to net.Conn
	muted    bool   // nothing more is passed on
	refused  bool   // the other side takes nothing any more
	long     func() // is called when the beginning of a value is passed on; nil = not

	buf             []byte
	sent, seen, end int  // buf[sent:end] is not passed on, buf[seen:end] not parsed
	start           int  // of the value under way
	torn            bool // its beginning has been passed on
}

// errUnparsed ends the parsing of a connection whose bytes are to be passed on as they are.
var errUnparsed = errors.New("not to be parsed")

// run passes values on until the connection or the parsing ends. A parser takes bytes in up to the end of a value; done
// is called behind each, when it has not been passed on yet.
func (f *flow) run(parse func(b []byte) (n int, done bool, err error), done func() error) error {
	f.buf = make([]byte, chunkSize)
	for {
		if err := f.fill(); err != nil {
			return err
		}
		for f.seen < f.end {
			n, ends, err := parse(f.buf[f.seen:f.end])
			if f.seen += n; err != nil {
				return err
			}
			if !ends {
				continue
			}
			if err := done(); err != nil {
				return err
			}
			f.start, f.torn = f.seen, false
		}
		if err := f.pass(f.start); err != nil {
			return err
		}
	}
}

// fill reads more, when all complete values have been passed on.
func (f *flow) fill() error {
	copy(f.buf, f.buf[f.sent:f.end])
	f.start, f.seen, f.end, f.sent = f.start-f.sent, f.seen-f.sent, f.end-f.sent, 0
	if f.torn || f.end == len(f.buf) {
		if f.torn = true; f.long != nil {
			f.long()
		}
		if err := f.pass(f.end); err != nil {
			return err
		}
		f.start, f.seen, f.end, f.sent = 0, 0, 0, 0
	}
	n, err := f.from.Read(f.buf[f.end:])
	if f.end += n; n > 0 {
		err = nil // it comes again
	}
	return err
}

// pass passes on what stands before a place.
func (f *flow) pass(upTo int) error {
	if upTo <= f.sent {
		return nil
	}
	b := f.buf[f.sent:upTo]
	f.sent = upTo
	_, err := f.Write(b)
	return err
}

// Write passes bytes on, unless the flow is muted.
func (f *flow) Write(b []byte) (int, error) {
	if f.muted {
		return len(b), nil
	}
	n, err := f.to.Write(b)
	f.refused = f.refused || err != nil
	return n, err
}

// replace passes other bytes on in the place of the value that just ended, of which nothing has been passed on.
func (f *flow) replace(b string) error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	f.sent = f.seen
	_, err := f.Write([]byte(b))
	return err
}

// rest passes on what comes behind the last value that was parsed, where that can still be done.
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
