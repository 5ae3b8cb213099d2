package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"
	"unicode/utf8"
)

// readAny reads a native file or JSON lines.
func readAny(r io.Reader) (*History, error) {
	br, size := buffered(r)
	if first, err := br.Peek(1); err == nil && first[0] == magic[0] {
		return readNative(br, size)
	}
	return readLines(br, size)
}

// Open reads a history file of either format.
func Open(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := readAny(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}

type reader struct {
	r      *bufio.Reader
	size   int64
	offset int64
	buf    []byte // a chunk's payload and zeros
	next   uint32 // expected sequence number
	ended  bool
	h      History
	each   func(*Op) // receives the operations instead of h, if not nil
	passed int       // number of operations handed on
	sorted bool      // the operations are in order
}

// readNative reads a native file and validates it. A crash can leave a file without an end, or with a torn piece at
// its end, which no whole chunk follows. For such a file, it returns the history up to there, with Partial. Any
// other mistake is a *formatError or a problemList.
func readNative(br *bufio.Reader, size int64) (*History, error) {
	r := &reader{r: br, size: size, sorted: true}
	if err := r.chunks(); err != nil {
		r.h.Space.Free()
		return nil, err
	}
	if !r.sorted {
		sortOps(r.h.Ops, nil)
	}
	r.dropNotes()
	if err := r.h.Validate(); err != nil {
		r.h.Space.Free()
		return nil, err
	}
	return &r.h, nil
}

func (r *reader) chunks() error {
	r.buf = make([]byte, 0, chunkSize+2*(recordMax+recordSlack))
	start, _ := r.r.Peek(len(magic))
	switch {
	case len(start) == len(magic) && string(start[:7]) == magic[:7] && start[7] != magic[7]:
		return &formatError{What: fmt.Sprintf("version %d of the format; this program reads version %d", start[7],
			magic[7])}
	case string(start) != magic:
		return &formatError{What: "not the beginning of a history"}
	}
	r.discard(len(magic))
	for {
		if more, err := r.chunk(); !more || err != nil {
			return err
		}
	}
}

// chunk reads the next chunk; more is false after a torn chunk and at the end of the file.
func (r *reader) chunk() (more bool, err error) {
	head, found, err := r.peek()
	switch {
	case err != nil:
		return false, err
	case found == nothing && r.next == 0:
		return false, r.wrong("the file ends before its header")
	case found == nothing && !r.ended:
		r.h.Partial = fmt.Sprintf("the file has no end after byte %d: its writer was killed", r.offset)
		return false, nil
	case found == nothing:
		return false, nil
	case r.ended:
		return false, r.wrong("the file goes on after its end")
	case found == torn:
		return false, r.torn()
	case head.sequence != r.next:
		return false, r.wrong("chunk %d comes where chunk %d is expected", head.sequence, r.next)
	case (head.kind == headerChunk) != (r.next == 0):
		return false, r.wrong("the header is not the first chunk, and the only one")
	}
	if err := r.payload(head.kind); err != nil {
		return false, err
	}
	r.discard(headSize + int(head.length))
	r.next++
	return true, nil
}

type found int

const (
	nothing found = iota // the file ends
	torn                 // no chunk, a part of one, or a wrong checksum
	whole
)

// peek looks at the next chunk and copies the payload of a whole one into r.buf.
func (r *reader) peek() (chunkHead, found, error) {
	b, err := r.window(headSize)
	if err != nil || len(b) == 0 {
		return chunkHead{}, nothing, err
	}
	h, ok := parseHead(b)
	if !ok {
		return h, torn, nil
	}
	b, err = r.window(headSize + int(h.length))
	if err != nil || len(b) < headSize+int(h.length) || crc32.Checksum(b[headSize:], castagnoli) != h.checksum {
		return h, torn, err
	}
	r.buf = append(r.buf[:0], b[headSize:]...)
	return h, whole, nil
}

// window returns the next n bytes, fewer at the end of the file. The buffer has room for any chunk.
func (r *reader) window(n int) ([]byte, error) {
	b, err := r.r.Peek(min(n, r.r.Size()))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return b, nil
}

// torn decides why a piece of the file is not a valid chunk. If a whole chunk follows, the file is corrupt. If none
// follows, a crash left the piece.
func (r *reader) torn() error {
	at := r.offset
	for {
		r.discard(1)
		b, err := r.window(r.r.Size())
		if err != nil {
			return err
		}
		next := nextHead(b)
		if next < 0 && len(b) < r.r.Size() {
			break
		}
		if next < 0 {
			r.discard(len(b) - headSize)
			continue
		}
		r.discard(next)
		_, found, err := r.peek()
		if err != nil {
			return err
		}
		if found == whole {
			return &formatError{Offset: at,
				What: fmt.Sprintf("corrupt: a chunk's checksum is wrong, yet there is a whole chunk at byte %d",
					r.offset)}
		}
	}
	if r.next == 0 {
		return &formatError{Offset: at, What: "the header is torn or corrupt"}
	}
	r.h.Partial = fmt.Sprintf("the file is torn at byte %d: its writer was killed", at)
	return nil
}

// nextHead finds a chunk's head in b; -1 if there is none.
func nextHead(b []byte) int {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(marker))
		if i < 0 {
			return -1
		}
		if _, ok := parseHead(b[from+i:]); ok {
			return from + i
		}
		from += i + 1
	}
}

func (r *reader) payload(kind uint32) error {
	switch kind {
	case headerChunk:
		if err := strictJSON(r.buf, &r.h.Header); err != nil {
			return r.wrong("header: %v", err)
		}
	case opsChunk:
		return r.records()
	case noteChunk:
		if len(r.buf) < 8 || len(r.buf) > 8+maxNote || !utf8.Valid(r.buf[8:]) {
			return r.wrong("not a note")
		}
		if r.h.Notes == nil {
			r.h.Notes = map[ID]string{}
		}
		r.h.Notes[ID(binary.LittleEndian.Uint64(r.buf))] = string(r.buf[8:])
	case faultChunk:
		var i Injection
		if err := strictJSON(r.buf, &i); err != nil {
			return r.wrong("fault: %v", err)
		}
		r.h.Faults = append(r.h.Faults, i)
	case endChunk:
		var e end
		if err := strictJSON(r.buf, &e); err != nil {
			return r.wrong("end: %v", err)
		}
		if len(e.Partial) > maxNote {
			return r.wrong("end: %v", errNote)
		}
		if n := len(r.h.Ops) + r.passed; e.Ops != n {
			return r.wrong("the file has %d operations, and %d by its end", n, e.Ops)
		}
		r.h.Partial, r.h.Allowed, r.ended = e.Partial, e.Allowed, true
		if e.Measured != nil {
			r.h.Measured = e.Measured
		}
		if e.Slack > 0 {
			r.h.Bounds.Agreement = Agreement{e.Slack, e.Doubts}
		}
	default:
		return r.wrong("unknown type of chunk %d", kind)
	}
	return nil
}

func (r *reader) records() error {
	n := len(r.buf)
	before := len(r.h.Ops)
	r.buf = append(r.buf, make([]byte, recordMax+recordSlack)...)
	var prev time.Duration
	for p := 0; p < n; {
		r.h.Ops = Append(&r.h.Space, r.h.Ops, Op{})
		op := &r.h.Ops[len(r.h.Ops)-1]
		next, ok := record(r.buf, p, op, prev)
		if !ok || next > n {
			return &formatError{Offset: r.offset + headSize + int64(p), What: "not an operation"}
		}
		if op.Return != Forever {
			prev = op.Return
		}
		if n := len(r.h.Ops); n > 1 && byReturn(r.h.Ops[n-2], *op) > 0 {
			r.sorted = false
		}
		p = next
	}
	if r.each != nil {
		r.handOn()
		return nil
	}
	if before == 0 {
		r.h.Ops = reserve(&r.h.Space, r.h.Ops, r.size-r.offset, int64(n))
	}
	return nil
}

// dropNotes drops the notes on operations that are missing from a torn file.
func (r *reader) dropNotes() {
	if r.ended || len(r.h.Notes) == 0 {
		return
	}
	notes := map[ID]string{}
	for i := range r.h.Ops {
		if note, ok := r.h.Notes[r.h.Ops[i].ID]; ok {
			notes[r.h.Ops[i].ID] = note
		}
	}
	if r.h.Notes = notes; len(notes) == 0 {
		r.h.Notes = nil
	}
}

func (r *reader) discard(n int) {
	n, _ = r.r.Discard(n) // peeked bytes are always there
	r.offset += int64(n)
}

func (r *reader) wrong(format string, args ...any) error {
	return &formatError{Offset: r.offset, What: fmt.Sprintf(format, args...)}
}

func strictJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.InputOffset() != int64(len(bytes.TrimRight(b, " \t\r\n"))) {
		return errors.New("trailing data")
	}
	return nil
}
