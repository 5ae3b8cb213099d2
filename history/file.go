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

// Writer writes a native file during the run: a crash loses only operations added after the last Flush. Only one
// goroutine may use it. After an error, it writes nothing more and returns the same error again.
type Writer struct {
	// Proven is the measured agreement of the clocks, which Close writes; zero = the header has it already.
	Proven Agreement
	// Close writes both. Allowed becomes History.Allowed, and Measured becomes Header.Measured.
	Allowed  bool
	Measured *Measured

	w        io.Writer
	buf      []byte // room for a head, then records
	at       int    // end of the records
	prev     time.Duration
	ops      int
	sequence uint32
	err      error
}

// Create begins a file with its header.
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

// Add writes an operation, at the next Flush at the latest. Operations must be added in the order of their returns.
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

// Note writes a description of an operation's effect immediately. The text has at most 64 KiB.
func (f *Writer) Note(id ID, text string) error {
	if len(text) > maxNote/3 && len(strings.ToValidUTF8(text, "\uFFFD")) > maxNote {
		return errNote
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, headSize), uint64(id))
	return f.chunk(noteChunk, append(b, strings.ToValidUTF8(text, "\uFFFD")...))
}

// Inject immediately writes a fault that is not in the plan. It gets the next index after the header's faults. The
// Fault and Heal operations of the fault refer to this index.
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

// Close writes the remaining operations and the end of the file. The argument partial says why the history is
// incomplete; empty = it is whole. The underlying writer stays open.
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

// chunk writes one chunk. The slice b begins with headSize free bytes for the chunk's head.
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
	return errors.Join(h.write(file), file.Close())
}

// write writes a history, and stops at the first error.
func (h *History) write(to io.Writer) error {
	w, err := Create(to, h.Header)
	if err != nil {
		return err
	}
	for i := range h.Ops {
		if err := w.Add(&h.Ops[i]); err != nil {
			return err
		}
	}
	for id, note := range h.Notes {
		if err := w.Note(id, note); err != nil {
			return err
		}
	}
	return w.Close(h.Partial)
}
