package history

import (
	"slices"
	"sync"
	"time"
)

// Feed receives the operations that another machine records, in the order of their returns. It also knows the time
// up to which they are complete. A Merge combines a Feed with the lanes of this machine.
type Feed struct {
	mu   sync.Mutex
	ops  []Op
	upTo time.Duration
	open []Op
}

// Add copies operations into the feed; any goroutine may call it. After the call, the feed has every operation that
// returned before upTo. The argument open has the calls without a return. Add drops those that began at upTo or
// later, because earlier operations of their workers may still be missing. A checker would otherwise conclude that
// the worker's visit before ended without a release.
func (f *Feed) Add(ops, open []Op, upTo time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, ops...)
	f.open = slices.DeleteFunc(append(f.open[:0], open...), func(op Op) bool { return op.Call >= upTo })
	f.upTo = max(f.upTo, upTo)
}

// End says that no more operations will be added. From then on, the feed does not delay the history, and Flush
// emits the calls that were open last.
func (f *Feed) End() { f.Add(nil, f.still(), Forever) }

func (f *Feed) still() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Op(nil), f.open...)
}

// take moves the received operations to a queue and returns the time up to which they are complete.
func (f *Feed) take(q *queue) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	q.ops = append(q.ops, f.ops...)
	f.ops = f.ops[:0]
	return f.upTo
}
