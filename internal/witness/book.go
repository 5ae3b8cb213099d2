package witness

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
)

// book has the holds of a key, of all servers that it stands on.
type book struct {
	subject
	holds   []*hold            // that were not given back
	acts    []act              // of a lock on several sites: commands to them
	waiters map[string]*waiter // by token and by holder
	seen    bool               // a grant was seen: before, the holder is unknown
	used    time.Duration      // a request or an effect concerned it last
	freed   time.Duration      // the last hold ended then; 0 = the lock was granted since
}

// hold is a grant, or a possible one.
type hold struct {
	token  string
	mark   uint64 // of its operations
	who    string // its owner: a connection, or an argument
	op     int    // its acquire; -1 = it is not kept
	id     history.ID
	key    int32
	worker int32

	from   time.Duration // the call of the acquire
	call   time.Duration // ... or of the last extension
	end    time.Duration // of its lease, counted from there; Forever without
	ended  bool          // the servers have it no longer
	over   time.Duration // ... which was seen then
	lost   bool          // its acquire had no answer
	words  bool          // ... and no effect was seen
	others bool          // no request that was seen asked for it

	client  string        // see wire.Request
	since   time.Duration // it was granted
	closed  bool          // its end was told
	endless bool          // that it has no end was told
}

// waiter is a client that tries.
type waiter struct {
	worker int32
	last   time.Duration

	client       string
	waits        bool          // it was refused
	since, tried time.Duration // it was so first and last
	pause        time.Duration // the longest between two tries
}

func (r *Reader) book(s subject) *book {
	b := made(r.books, s, book{subject: s})
	b.used = r.now
	return b
}

// of finds the hold with a token; nil if there is none, or more than one.
func (b *book) of(token string) (found *hold) {
	for _, h := range b.holds {
		if h.token == token {
			if found != nil {
				return nil
			}
			found = h
		}
	}
	return found
}

// owner is the hold with a token that goes on in the servers: of several with one token the last that was granted.
func (b *book) owner(token string) *hold {
	h := b.of(token)
	for i := 0; h == nil && i < len(b.holds); i++ {
		if o := b.holds[len(b.holds)-1-i]; o.token == token && !o.ended {
			h = o
		}
	}
	return h
}

// who identifies the sender of a request.
func (r *Reader) who(q *sighting) string {
	if a := r.o.Holder; a.By == ByArg && a.Arg < len(q.Args) {
		return q.Args[a.Arg]
	}
	return strconv.FormatInt(q.Conn, 10)
}

// holder finds whose request it is: that of the hold whose token it names, or the newest hold of its connection. Guess
// says that the connection told, which may serve several holders at a time. An only hold is its owner's.
func (r *Reader) holder(b *book, q *sighting, owner *hold) (h *hold, guess bool) {
	byToken := !r.promised()
	for _, arg := range q.args {
		if h := b.of(arg); h != nil && byToken {
			return h, false
		}
	}
	if k := r.scripts[q.script]; byToken && q.intent == runs && k != nil && k.token >= 0 {
		return nil, false // it names another token
	}
	if r.o.Holder.By != ByToken {
		who := r.who(q)
		for i := len(b.holds) - 1; i >= 0; i-- {
			if b.holds[i].who == who {
				return b.holds[i], r.o.Holder.By == Auto || r.o.Holder.By == ""
			}
		}
		if q.intent == frees && !owner.outsider() {
			r.Improper++ // it gives back a lock without having it
		}
	}
	if owner != nil && len(b.holds) == 1 && b.holds[0] == owner {
		return owner, false
	}
	return nil, false
}

// has tells whether a hold, which was not given back, went on at a time.
func (h *hold) has(at time.Duration) bool { return h.end > at && (!h.ended || h.over > at) }

// stop ends a hold in the servers.
func (h *hold) stop(at time.Duration) {
	if h != nil && !h.ended {
		h.ended, h.over = true, at
	}
}

func (h *hold) outsider() bool { return h != nil && h.others }

// share counts the holds of a connection that asks for another one.
func (r *Reader) share(b *book, who, token string, at time.Duration) {
	for _, o := range b.holds {
		if o.who == who && o.token != token && o.has(at) {
			r.Improper++
		}
	}
}

// promised is the end of a lease as its holder can count on it.
func promised(op history.Op) time.Duration {
	if op.TTL == 0 {
		return history.Forever
	}
	return op.Call + surely(op.TTL)
}

// lasts gives a hold the lease of an operation.
func (h *hold) lasts(op *history.Op) {
	op.Until, h.end = promised(*op), history.Forever
	if op.TTL > 0 {
		h.end = op.Call + op.TTL
	}
}

// grant opens a hold.
func (r *Reader) grant(b *book, a act) {
	q, op, token := a.q, a.op, a.token
	b.seen = true
	r.grants[token]++
	r.Grants++
	h := &hold{token: token, mark: history.Hash(token), key: op.Key, from: op.Call, call: op.Call, end: history.Forever,
		others: q == nil}
	if n := r.grants[token]; n > 1 {
		h.mark = history.Hash(token + "#" + strconv.Itoa(n))
	}
	op.Kind, op.Token = history.Acquire, h.mark
	r.Lease = max(r.Lease, op.TTL)
	h.lasts(&op)
	var w *waiter
	if q != nil {
		h.who, h.lost, h.words = r.who(q), op.Return == history.Forever, a.words
		r.share(b, h.who, token, q.Call)
		w = b.waiting(r, q, token, op.Call)
		op.Worker, h.client = w.worker, q.Client
		for _, name := range []string{"t" + token, "c" + h.who} {
			if o := b.waiters[name]; o != nil && o != w {
				r.leaves(b, o)
			}
			delete(b.waiters, name)
		}
	} else {
		op.Worker = r.worker(op.Call)
	}
	h.worker = op.Worker
	h.op = r.put(q, op)
	if h.op >= 0 {
		h.id = r.ops[h.op].ID
	}
	b.lapse(r) // the hold before may have ended since
	b.holds = append(b.holds, h)
	r.begins(b, h, &op, w)
	if len(r.o.Data) > 0 && h.id != 0 && q != nil {
		r.spans[h.who] = append(r.spans[h.who], &span{hold: h, from: op.Return, to: history.Forever})
	}
}

// put keeps an operation of a request, or of a client that was not seen. An answer may complete it later.
func (r *Reader) put(q *sighting, op history.Op) int {
	n := r.add(r, op)
	if n >= 0 && q != nil && !q.answered {
		q.ops = append(q.ops, n)
	}
	if r.killed > op.Call && r.killed < op.Return && q != nil {
		at := op.Return
		if at == history.Forever {
			at = r.killed
		}
		r.dies(op.Worker, at) // it was under way when its client was killed
	}
	return n
}

// surely is how long a lease lasts at least, whatever its holder believes.
func surely(ttl time.Duration) time.Duration {
	return max(ttl-ttl/time.Duration(1/Rate)-Round, 0)
}

// Rate and Round are by how much servers' clocks are believed to run fast or slow, and how exact they are.
const (
	Rate  = 0.001
	Round = 2 * time.Millisecond
)

// waiting is a client that tries.
func (b *book) waiting(r *Reader, q *sighting, token string, call time.Duration) *waiter {
	name := "c" + r.who(q)
	if token != "" && r.grants[token] <= 1 { // it is the try's own
		name = "t" + token
	}
	if b.waiters == nil {
		b.waiters = map[string]*waiter{}
	}
	w := b.waiters[name]
	if w == nil {
		w = &waiter{worker: r.worker(call), client: q.Client}
		b.waiters[name] = w
	}
	if w.last = max(r.now, call); !w.waits {
		w.since = call
	}
	return w
}

// extend tells of an extension of a hold.
func (r *Reader) extend(q *sighting, h *hold, op history.Op, guess bool) {
	op.Kind, op.Hold, op.Worker, op.Token, op.Until = history.Extend, h.id, h.worker, h.mark, promised(op)
	if op.Outcome == history.OK {
		h.call = op.Call
		h.lasts(&op)
	}
	delete(r.doubted, h)
	r.told(q, h, op, guess)
}

// free tells of a release of a hold.
func (r *Reader) free(b *book, q *sighting, h *hold, op history.Op, guess bool) {
	op.Kind, op.Hold, op.Worker, op.Token = history.Release, h.id, h.worker, h.mark
	if op.Outcome == history.OK {
		r.Releases++
	}
	delete(r.doubted, h)
	r.told(q, h, op, guess)
	if op.Value == 0 { // a re-entered hold stays
		for _, p := range r.spans[h.who] {
			if p.hold == h {
				p.to = min(p.to, op.Call)
			}
		}
		b.drop(r, h)
	}
}

// told keeps an operation of a hold.
func (r *Reader) told(q *sighting, h *hold, op history.Op, guess bool) int {
	op.Key = h.key
	if h.id == 0 || op.Call < h.from {
		return -1
	}
	if h.lost {
		r.known[h.id] = true
	}
	n := r.put(q, op)
	if guess && n >= 0 {
		r.guesses = append(r.guesses, n)
	}
	return n
}

// drop takes a hold out, and frees its worker.
func (b *book) drop(r *Reader, h *hold) {
	if i := slices.Index(b.holds, h); i >= 0 {
		b.holds = slices.Delete(b.holds, i, i+1)
		r.leave(h.worker)
	}
}

// refuse tells of a try that got nothing.
func (r *Reader) refuse(b *book, q *sighting, op history.Op, token string) {
	if q == nil {
		return
	}
	r.Refused++
	if h := b.of(token); h != nil && h.lost && !h.words && q.Call > h.call && h.has(q.Call) && h.op >= 0 &&
		r.grants[token] == 1 {
		r.phantom = append(r.phantom, h.op) // of its own grant, which it has not heard of
		r.ops[h.op].Return = max(r.ops[h.op].Call, op.Return)
		return
	}
	w := b.waiting(r, q, token, op.Call)
	r.refused(b, w, &op)
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

// Crashed tells that the programs were killed at a time, with all holders and waiters, and who is answered later.
func (r *Reader) Crashed(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.killed = max(r.now, at), at
	for _, b := range r.books {
		for _, h := range b.holds {
			r.dies(h.worker, at)
		}
		for _, w := range b.waiters {
			r.leaves(b, w)
			r.dies(w.worker, at)
		}
		clear(b.waiters)
	}
}

func (r *Reader) dies(w int32, at time.Duration) {
	if r.workers[w].free != history.Forever {
		r.add(r, history.Op{Kind: history.Crash, Worker: w, Key: -1, Call: at, Return: at, Outcome: history.OK})
		r.workers[w].free = history.Forever // it does not stand for another client
	}
}

// sweep forgets holds and waiters that are over, and keys that are free and that no command concerned lately.
func (r *Reader) sweep() {
	for _, l := range r.ledgers {
		if !l.none() || len(l.changes) > 0 || l.state.held() {
			l.book.used = r.now
		}
	}
	for s, b := range r.books {
		b.lapse(r)
		for _, h := range slices.Clone(b.holds) {
			if h.end < r.now-keepBound {
				r.Unreleased++
				b.drop(r, h)
			}
		}
		maps.DeleteFunc(b.waiters, func(_ string, w *waiter) bool {
			over := w.last < r.now-waiterBound
			if over {
				r.leaves(b, w)
				r.leave(w.worker)
			}
			return over
		})
		if len(b.holds)+len(b.waiters)+len(b.acts) == 0 && (r.o.Rolling || r.o.Most == 0) && r.now-b.used > roundBound {
			delete(r.books, s)
		}
	}
	for at := range r.ledgers {
		if r.books[at.subject] == nil {
			delete(r.ledgers, at)
		}
	}
}
