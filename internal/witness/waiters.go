package witness

import (
	"slices"
	"time"

	"hammerlock/history"
)

// waiter is a client that tries to get the lock.
type waiter struct {
	name   string // its name in the book's waiters
	who    string // its client
	worker int32
	last   time.Duration

	client       string
	waits        bool          // it was refused
	since, tried time.Duration // times of the first and the last try
	pause        time.Duration // longest time between two tries
}

// mostGiven is the largest number of abandoned tokens that are kept, to notice that one of them is tried again.
const mostGiven = 64

// waiting returns the waiter for the client of a request, and makes one if there is none. A try with a new token may
// come from another thread on the same connection, or from a client that makes a token for each try. Threads try
// again with the same token. Until such a repetition is seen, a new token ends the wait with the previous token.
func (b *book) waiting(r *Reader, q *sighting, token string, call time.Duration) *waiter {
	who := r.who(q)
	name := "c" + who
	if _, dated := r.stamp(token); token != "" && !dated && r.times(token) <= 1 {
		name = "t" + token // the token belongs to this try, not to an earlier hold, and is not the time of day
	}
	if b.waiters == nil {
		b.waiters, b.latest = map[string]*waiter{}, map[string]*waiter{}
	}
	w := b.waiters[name]
	b.again = b.again || w != nil && w.waits && name[0] == 't'
	if w == nil {
		b.again = b.again || slices.Contains(b.given, name)
		if o := b.latest[who]; o != nil && o.waits && !b.again {
			b.gives(r, o)
		}
		w = &waiter{name: name, who: who, worker: r.worker(call, who), client: q.Client}
		b.waiters[name] = w
	}
	b.latest[who] = w
	for _, o := range b.orphans {
		o.again = o.again || o.hold.who == who
	}
	if w.last = max(r.now, call); !w.waits {
		w.since = call
	}
	return w
}

// gives ends the wait of a client that has made another token.
func (b *book) gives(r *Reader, w *waiter) {
	if b.given = append(b.given, w.name); len(b.given) > mostGiven {
		b.given = b.given[1:]
	}
	b.forsake(r, w)
}

// forsake removes a waiter that was not granted the lock, so that another client can use its worker number.
func (b *book) forsake(r *Reader, w *waiter) {
	r.leaves(b, w)
	r.leave(w.worker)
	b.served(w)
}

// served removes a waiter. The worker number of the waiter stays in use.
func (b *book) served(w *waiter) {
	delete(b.waiters, w.name)
	if b.latest[w.who] == w {
		delete(b.latest, w.who)
	}
}

// refuse adds a refused try.
func (r *Reader) refuse(b *book, q *sighting, op history.Op, token string) {
	if q == nil {
		return
	}
	r.Refused++
	if h := b.of(token); h != nil && h.lost && !h.words && q.Call > h.call && h.has(q.Call) && h.op >= 0 &&
		r.times(token) == 1 {
		r.phantom = append(r.phantom, h.op) // the client's own grant, whose reply was lost, caused this refusal
		r.ops[h.op].Return = max(r.ops[h.op].Call, op.Return)
		return
	}
	w := b.waiting(r, q, token, op.Call)
	r.refused(b, w, &op)
	b.inVain(r, &op)
	if !b.seen {
		return // the holder is unknown
	}
	r.share(b, r.who(q), token, q.Call)
	op.Kind, op.Outcome, op.Token = history.Acquire, history.Failed, history.Hash(token)
	if op.Reason == history.None {
		op.Reason = history.Busy
	}
	op.Worker = w.worker
	r.put(q, op)
}

// closed notes the holders and the waiters whose connections have ended.
func (b *book) closed(r *Reader) {
	for _, h := range b.holds {
		if at := r.closed[h.who]; at > 0 {
			h.alone = at
			if h.end != history.Forever {
				h.alone = max(at, h.end)
			}
		}
	}
	for _, w := range b.waiters {
		if r.closed[w.who] > 0 {
			b.forsake(r, w)
		}
	}
}

// inVain counts a refused try if the holder's connection had ended long before, and the holder's lease was over or
// endless. Either others keep the lease of a dead holder alive, or the holder is alive and has another connection.
func (b *book) inVain(r *Reader, op *history.Op) {
	for _, h := range b.holds {
		if h.alone == 0 || h.ended || op.Call < h.alone+endlessBound {
			continue
		}
		if r.InVain++; !h.vain {
			h.vain = true
			r.Orphaned++
		}
	}
}
