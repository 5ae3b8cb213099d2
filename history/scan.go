package history

import (
	"fmt"
	"io"
)

// Scan reads a native file and hands its operations on, one after the other in the order of the file, without
// keeping them: a long history takes no more memory than a short one. An operation must not be kept longer than the
// call. The history that is returned has everything but operations. Unlike Read, Scan does not validate.
func Scan(r io.Reader, each func(*Op)) (*History, error) {
	br, size := buffered(r)
	s := &reader{r: br, size: size, each: each, buf: make([]byte, 0, chunkSize+2*(recordMax+recordSlack))}
	if start, _ := br.Peek(len(magic)); string(start) != magic {
		return nil, &FormatError{What: "not the beginning of a history that can be scanned"}
	}
	s.discard(len(magic))
	for more := true; more; {
		var err error
		if more, err = s.chunk(); err != nil {
			return nil, fmt.Errorf("scan: %w", err)
		}
	}
	return &s.h, nil
}

// handOn empties the operations of a chunk.
func (r *reader) handOn() {
	for i := range r.h.Ops {
		r.each(&r.h.Ops[i])
	}
	r.passed += len(r.h.Ops)
	r.h.Ops = r.h.Ops[:0]
}
