package recording

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
)

// Reader derives operations from network traffic. An operation may still change when more of the traffic is known.
type Reader interface {
	// Since returns the operations that are known so far, without the first n.
	Since(n int) []history.Op
	// Written returns the history so far, together with the suite's own operations, which are in own. If over is
	// true, the run has ended and the history is complete.
	Written(own history.History, over bool) *history.History
}

// How often the history of a Reader is written. The pause after a write is at least sheetCost times as long as the
// write.
const (
	sheetEvery = time.Second
	sheetCost  = 20
)

// killed is the Partial of a history that is written during the run. It is right if no later write
// replaces that history.
const killed = "its writer was killed"

// sheet writes the history of a Reader. It rewrites the whole file each time, because operations may change.
type sheet struct {
	path   string
	reader Reader

	mu     sync.Mutex
	own    history.History // recorded by the suite itself
	saving sync.WaitGroup
	busy   bool
	next   time.Duration
}

func newSheet(path string, h history.Header, r Reader) (*sheet, error) {
	s := &sheet{path: path, reader: r, own: history.History{Header: h, Notes: map[history.ID]string{}}}
	return s, s.save(false, killed, nil)
}

func (s *sheet) note(id history.ID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.Notes[id] = text
}

func (s *sheet) inject(i history.Injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.Faults = append(slices.Clip(s.own.Faults), i)
}

func (s *sheet) add(op *history.Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own.Ops = append(s.own.Ops, *op)
}

// flush starts to write the history if the last write is long enough ago. It returns whether it has started. An
// error does not matter here, because close writes the history again.
func (s *sheet) flush(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || now < s.next {
		return false
	}
	s.busy = true
	s.saving.Go(func() {
		begun := time.Now()
		_ = s.save(false, killed, nil)
		took := time.Since(begun)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy, s.next = false, now+took+max(sheetEvery, sheetCost*took)
	})
	return true
}

func (s *sheet) close(partial string, _ bool, measured *history.Measured, _ history.Agreement) error {
	s.saving.Wait()
	return s.save(true, partial, measured)
}

// save writes the history to a new file, and then renames it over the old one.
func (s *sheet) save(over bool, partial string, measured *history.Measured) error {
	s.mu.Lock()
	own := s.own
	own.Ops, own.Notes = slices.Clone(own.Ops), map[history.ID]string{}
	for id, text := range s.own.Notes {
		own.Notes[id] = text
	}
	s.mu.Unlock()
	h := s.reader.Written(own, over)
	h.Partial, h.Measured = partial, measured
	begun := s.path + ".new"
	err := h.Save(begun)
	if err == nil {
		err = os.Rename(begun, s.path)
	} else {
		_ = os.Remove(begun) // there is no room for it
	}
	if err != nil {
		return fmt.Errorf("keep what is seen: %w", err)
	}
	return nil
}

// Limits of the display for a Reader: holders and waiters, and locks. Operations beyond them are not shown.
const (
	ReadWorkers = 32
	ReadKeys    = 1000
	readAfter   = time.Second // an operation is usually known this long after its return
)

// follow shows operations to an observer in the order of their returns, when they are old enough. It drops operations
// that become known too late.
type follow struct {
	reader Reader
	read   int          // number of operations taken from the reader
	next   []history.Op // not yet shown
	until  time.Duration
	shown  time.Duration
}

// look shows the operations that are old enough, at most once per tellEvery. It returns the time up to which
// operations are shown.
func (f *follow) look(now time.Duration, observe func(*history.Op)) time.Duration {
	until := max(now-readAfter, 0)
	if until-f.until < tellEvery {
		return f.until
	}
	f.until = until
	more := f.reader.Since(f.read)
	f.read += len(more)
	f.next = slices.Grow(f.next, len(more))
	for _, op := range more {
		if op.Worker < ReadWorkers && op.Key < ReadKeys {
			f.next = append(f.next, op)
		}
	}
	slices.SortStableFunc(f.next, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	n := 0
	for ; n < len(f.next) && f.next[n].Return <= until; n++ {
		op := &f.next[n]
		if op.Return >= f.shown {
			f.shown = op.Return
			observe(op)
		}
	}
	f.next = f.next[n:]
	return until
}
