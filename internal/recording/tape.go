package recording

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"hammerlock/history"
)

// flushEvery is the interval at which the history is written. A crash of the suite loses at most the operations
// of one interval.
const flushEvery = 250 * time.Millisecond

// tape writes the history of a run to a file. A nil tape keeps nothing.
type tape struct {
	file    *os.File
	writer  *history.Writer
	flushed time.Duration
	err     error

	mu    sync.Mutex
	notes []note
	extra []history.Injection // faults that are in no plan
}

type note struct {
	id   history.ID
	text string
}

func newTape(path string, h history.Header) (*tape, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make the history: %w", err)
	}
	writer, err := history.Create(file, h)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the history: %w", err), file.Close())
	}
	return &tape{file: file, writer: writer}, nil
}

func (t *tape) note(id history.ID, text string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes = append(t.notes, note{id, text})
}

func (t *tape) inject(i history.Injection) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.extra = append(t.extra, i)
}

// add writes an operation. A fault must be written before an operation refers to it.
func (t *tape) add(op *history.Op) {
	if t == nil || t.err != nil {
		return
	}
	if op.Kind == history.Fault {
		t.err = t.writeNotes()
	}
	if t.err == nil {
		t.err = t.writer.Add(op)
	}
}

func (t *tape) flush(now time.Duration) bool {
	switch {
	case t == nil:
		return true
	case t.err != nil || now-t.flushed < flushEvery:
		return false
	}
	t.flushed = now
	t.err = cmp.Or(t.writeNotes(), t.writer.Flush())
	return t.err == nil
}

func (t *tape) writeNotes() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first error // the writer repeats its error
	for _, i := range t.extra {
		first = cmp.Or(first, t.writer.Inject(i))
	}
	t.extra = nil
	for _, n := range t.notes {
		first = cmp.Or(first, t.writer.Note(n.id, n.text))
	}
	t.notes = nil
	return first
}

func (t *tape) close(partial string, allowed bool, measured *history.Measured, proven history.Agreement) error {
	if t == nil {
		return nil
	}
	t.writer.Proven, t.writer.Allowed, t.writer.Measured = proven, allowed, measured
	return errors.Join(cmp.Or(t.err, t.writeNotes(), t.writer.Close(partial)), t.file.Close())
}
