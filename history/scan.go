package history

import (
	"fmt"
	"io"
)

// Scan reads a native file and passes its operations to the function each, in file order. It keeps no operation, so a
// long history takes no more memory than a short one. An operation is valid only until the function returns. The
// returned history has everything but the operations. Unlike Open, Scan does not validate.
func Scan(r io.Reader, each func(*Op)) (*History, error) {
	br, size := buffered(r)
	s := &reader{r: br, size: size, each: each}
	if err := s.chunks(); err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	return &s.h, nil
}

// handOn passes the operations of a chunk to the function each and drops them.
func (r *reader) handOn() {
	for i := range r.h.Ops {
		r.each(&r.h.Ops[i])
	}
	r.passed += len(r.h.Ops)
	r.h.Ops = r.h.Ops[:0]
}
