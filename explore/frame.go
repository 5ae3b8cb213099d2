package explore

import (
	"bytes"
	"slices"
	"strconv"
)

// frame is a value of the Redis protocol as it is sent.
type frame struct {
	bytes []byte
	words []string // the strings in it, in order
}

// cut removes a value (RESP 2) from the beginning of b. It returns false if the value is incomplete.
func cut(b *[]byte) (f frame, whole bool) {
	n := f.read(*b, 0)
	if n == 0 {
		return frame{}, false
	}
	f.bytes, *b = (*b)[:n:n], (*b)[n:]
	return f, true
}

// read reads the value that begins at the index `at`. It returns the index of its end, or 0 if the value is incomplete.
func (f *frame) read(b []byte, at int) int {
	end := bytes.IndexByte(b[at:], '\n')
	if end < 0 {
		return 0
	}
	line := bytes.TrimSuffix(b[at:at+end], []byte("\r"))
	if at += end + 1; len(line) == 0 {
		return at
	}
	n, _ := strconv.Atoi(string(line[1:])) // unused if this kind of line has no length
	switch {
	case (line[0] == '*' || line[0] == '$') && n < 0:
		f.words = append(f.words, "nil")
	case line[0] == '*':
		f.words = slices.Grow(f.words, n)
		for range n {
			if at = f.read(b, at); at == 0 {
				return 0
			}
		}
	case line[0] == '$':
		if len(b) < at+n+2 {
			return 0
		}
		f.words = append(f.words, string(b[at:at+n]))
		at += n + 2
	default:
		f.words = append(f.words, string(line[1:]))
	}
	return at
}
