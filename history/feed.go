package history

import (
	"slices"
	"sync"
	"time"
)

// Feed is what another machine records, as it comes in: operations in the order of their returns, and up to when they
// are complete. A Merge takes it in beside the lanes of this machine.
type Feed struct {
	mu   sync.Mutex
	ops  []Op
	upTo time.Duration
	open []Op
}

// Add takes operations in. Everything that returned before upTo has now been added; open are the calls that had not
// returned yet. A later operation is left out, since its worker's operations before it may be missing: a judge who saw
// it would believe that the visit before was over without a release. Any goroutine may call it; the operations are
// copied.
func (f *Feed) Add(ops, open []Op, upTo time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, ops...)
	f.open = slices.DeleteFunc(append(f.open[:0], open...), func(op Op) bool { return op.Call >= upTo })
	f.upTo = max(f.upTo, upTo)
}

// End says that nothing more comes: what is added holds the history back no longer, and Flush hands on the calls that
// were open last.
func (f *Feed) End() { f.Add(nil, f.still(), Forever) }

func (f *Feed) still() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.open...)
}

// take moves what came in to a queue and returns up to when it is complete.
func (f *Feed) take(q *queue) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.ops = append(q.ops, f.ops...)
	f.ops = f.ops[:0]
	return f.upTo
}
