package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"time"
)

// Writer writes a native file during the run: whatever happens, what was added before the last Flush can be read. A
// single goroutine uses it. After an error it writes nothing more and repeats the error.
type Writer struct {
	// Proven is what the processes' clocks were found to agree within, if Close is to say so; zero = the header has
	// said it.
	Proven Agreement
	// Allowed is that of the History, and Measured that of its Header, told by Close.
	Allowed  bool
	Measured *Measured

	w        io.Writer
	buf      []byte // room for a head, then records
	at       int    // the end of the records
	prev     time.Duration
	ops      int
	sequence uint32
	err      error
}

// Create begins a file: it writes the header.
func Create(w io.Writer, h Header) (*Writer, error) {
	f := &Writer{w: w, at: headSize, buf: make([]byte, headSize+chunkSize+recordMax+recordSlack)}
	header, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	if _, err := io.WriteString(w, magic); err != nil {
		return nil, fmt.Errorf("write header: %w", err)
	}
	return f, f.chunk(headerChunk, append(make([]byte, headSize), header...))
}

// Add writes an operation, at the latest with the next Flush. Operations come in the order of their returns.
func (f *Writer) Add(op *Op) error {
	if f.err != nil {
		return f.err
	}
	f.at = putRecord(f.buf, f.at, op, f.prev)
	if op.Return != Forever {
		f.prev = op.Return
	}
	f.ops++
	if f.at >= headSize+chunkSize {
		return f.Flush()
	}
	return nil
}

// Note writes at once what an operation did, in words: at most 64 KiB.
func (f *Writer) Note(id ID, text string) error {
	if len(text) > maxNote/3 && len(strings.ToValidUTF8(text, "\uFFFD")) > maxNote {
		return errNote
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, headSize), uint64(id))
	return f.chunk(noteChunk, append(b, strings.ToValidUTF8(text, "\uFFFD")...))
}

// Inject writes, at once, a fault that is in no plan. Its operations name it by its place behind those of the header.
func (f *Writer) Inject(i Injection) error {
	b, err := json.Marshal(i)
	if err != nil {
		return err
	}
	return f.chunk(faultChunk, append(make([]byte, headSize), b...))
}

// Flush writes all operations that were added.
func (f *Writer) Flush() error {
	if f.err != nil || f.at == headSize {
		return f.err
	}
	err := f.chunk(opsChunk, f.buf[:f.at])
	f.at, f.prev = headSize, 0
	return err
}

// Close writes the rest and the end: partial says why the history is not whole; it is empty for a whole one. The
// underlying writer stays open.
func (f *Writer) Close(partial string) error {
	if len(partial) > maxNote {
		return errNote
	}
	if err := f.Flush(); err != nil {
		return err
	}
	payload, err := json.Marshal(end{Partial: partial, Allowed: f.Allowed, Ops: f.ops, Slack: f.Proven.Slack,
		Doubts: f.Proven.Doubts, Measured: f.Measured})
	if err != nil {
		return err
	}
	if err := f.chunk(endChunk, append(make([]byte, headSize), payload...)); err != nil {
		return err
	}
	f.err = errors.New("the history file is closed")
	return nil
}

// chunk writes b, which begins with room for the head, in one piece.
func (f *Writer) chunk(kind uint32, b []byte) error {
	if f.err != nil {
		return f.err
	}
	payload := b[headSize:]
	if len(payload) > maxPayload {
		return fmt.Errorf("write history: a text of %d bytes, at most %d", len(payload), maxPayload)
	}
	chunkHead{kind, f.sequence, uint32(len(payload)), crc32.Checksum(payload, castagnoli)}.put(b)
	f.sequence++
	if _, err := f.w.Write(b); err != nil {
		f.err = fmt.Errorf("write history: %w", err)
	}
	return f.err
}

// Save writes a history to a file.
func (h *History) Save(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w, err := Create(file, h.Header)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	for i := range h.Ops {
		err = errors.Join(err, w.Add(&h.Ops[i]))
	}
	for id, note := range h.Notes {
		err = errors.Join(err, w.Note(id, note))
	}
	return errors.Join(err, w.Close(h.Partial), file.Close())
}
