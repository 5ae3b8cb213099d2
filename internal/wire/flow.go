package wire

import (
	"errors"
	"net"
)

const (
	chunkSize  = 16 << 10
	maxRewrite = 1 << 20 // bytes of a reply with addresses that is held until it is complete
)

// flow is one direction of a connection. What is complete is passed on at once, as it came; the beginning of a value is
// held until its end comes, or until it fills the buffer.
type flow struct {
	from, to net.Conn
	muted    bool        // nothing more is passed on
	refused  bool        // nobody takes it any more
	long     func() bool // a value that fills the buffer is coming: is it to be held nevertheless?

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
	for {
		if err := f.fill(); err != nil {
			return err
		}
		for f.seen < f.end {
			n, ends, err := parse(f.buf[f.seen:f.end])
			f.seen += n
			if err != nil {
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

// fill reads more, when all that is complete has been passed on.
func (f *flow) fill() error {
	if f.sent > 0 {
		copy(f.buf, f.buf[f.sent:f.end])
		f.start, f.seen, f.end, f.sent = f.start-f.sent, f.seen-f.sent, f.end-f.sent, 0
	}
	switch {
	case len(f.buf) == 0:
		f.buf = make([]byte, chunkSize)
	case f.torn || f.end == len(f.buf):
		if hold := f.long(); hold && !f.torn && len(f.buf) < maxRewrite {
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
			break
		}
		f.torn = true
		if err := f.pass(f.end); err != nil {
			return err
		}
		f.start, f.seen, f.end, f.sent = 0, 0, 0, 0
	case f.end == 0 && len(f.buf) > chunkSize:
		f.buf = make([]byte, chunkSize)
	}
	n, err := f.from.Read(f.buf[f.end:])
	f.end += n
	if n > 0 {
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

// Write passes bytes on, unless nothing more is.
func (f *flow) Write(b []byte) (int, error) {
	if f.muted {
		return len(b), nil
	}
	n, err := f.to.Write(b)
	f.refused = f.refused || err != nil
	return n, err
}

// whole is the value that just ended, if none of it has been passed on.
func (f *flow) whole() []byte {
	if f.torn {
		return nil
	}
	return f.buf[f.start:f.seen]
}

// replace passes other bytes on in the place of the value that just ended.
func (f *flow) replace(b []byte) error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	f.sent = f.seen
	_, err := f.Write(b)
	return err
}
