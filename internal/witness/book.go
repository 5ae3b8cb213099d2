package witness

import (
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
)

// book has the holds of one lock, on all servers that store its key.
type book struct {
	subject
	page    int32 // its number in Reader.pages; valid if edition equals Reader.edition
	edition int
	holds   []*hold            // holds that were not released
	orphans []*orphan          // holds that were released by a client that held nothing
	acts    []act              // for a lock on several sites: recent commands to these sites
	waiters map[string]*waiter // indexed by "t" + token and by "c" + client
	latest  map[string]*waiter // by client: the waiter of its last try
	given   []string           // the latest tokens that clients have abandoned: see waiting
	again   bool               // a token that was refused has been tried again
	seen    bool               // a grant was seen; before the first grant, the holder is unknown
	used    time.Duration      // time of the last request or effect on the key
	freed   time.Duration      // end of the last hold; 0 = a grant followed it
}

// hold is a certain or possible grant.
type hold struct {
	token  string
	mark   uint64 // identifies the token in its operations
	who    string // identifies its client: a connection, or an argument of its commands
	op     int    // index of its Acquire in the reader's ops; -1 = that operation was dropped
	id     history.ID
	key    int32
	worker int32

	from   time.Duration // call of the Acquire
	call   time.Duration // call of the Acquire, or of the last extension
	end    time.Duration // end of its lease, counted from call; history.Forever = the lease never ends
	ended  bool          // the servers no longer have it
	over   time.Duration // the time at which its end was seen
	lost   bool          // its Acquire got no reply
	words  bool          // only the command's words show the grant: no effect was seen
	least  bool          // its lease may be longer than end says
	others bool          // the request for it was not seen

	client  string        // see wire.Request
	since   time.Duration // time of the grant
	closed  bool          // a notice of its end was sent
	endless bool          // a notice that it never expires was sent
	// alone is the time from which two conditions are met: its connection has ended, and its lease is over or
	// endless. 0 = they are not met, or its client has another connection.
	alone time.Duration
	vain  bool // counted in Orphaned: it has refused a try long after alone
}

// of returns the only hold with a token; nil if there is none, or more than one.
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

// owner returns the hold with a token that the servers still have; nil if there is none. If several holds share the
// token, it returns the last of them.
func (b *book) owner(token string) *hold {
	h := b.of(token)
	for i := 0; h == nil && i < len(b.holds); i++ {
		if o := b.holds[len(b.holds)-1-i]; o.token == token && !o.ended {
			h = o
		}
	}
	return h
}

// who returns a name for the sender of a request: the connection number, or the argument that Options.Holder selects.
func (r *Reader) who(q *sighting) string {
	if a := r.o.Holder; a.By == ByArg && a.Arg < len(q.Args) {
		return q.Args[a.Arg]
	}
	return strconv.FormatInt(q.Conn, 10)
}

// holder returns the hold that a request concerns; nil if it is unknown. It prefers the hold whose token is an
// argument of the request. Otherwise it takes the newest hold of the connection, and guess is true if other clients
// may share that connection.
func (r *Reader) holder(b *book, q *sighting, owner *hold) (h *hold, guess bool) {
	byToken := !r.promised()
	for _, arg := range q.args {
		if h := b.of(arg); h != nil && byToken {
			if h.who != r.who(q) {
				r.pooled++
				h.alone = 0
			}
			return h, false
		}
	}
	if k := r.scripts[q.script]; byToken && q.intent == runs && k != nil && k.token >= 0 {
		return nil, false // the request names another token
	}
	if r.o.Holder.By != ByToken {
		who := r.who(q)
		for i := len(b.holds) - 1; i >= 0; i-- {
			if b.holds[i].who == who {
				return b.holds[i], r.o.Holder.By == Auto || r.o.Holder.By == ""
			}
		}
		if q.intent == frees && !owner.outsider() {
			r.Improper++ // the client releases a lock that it does not hold: see orphan
		}
	}
	if owner != nil && len(b.holds) == 1 && b.holds[0] == owner {
		return owner, false
	}
	return nil, false
}

// has tells whether a hold was valid at a given time: its lease had not ended, and no other end of the hold had been
// seen.
func (h *hold) has(at time.Duration) bool { return h.end > at && (!h.ended || h.over > at) }

// stop records that the servers no longer have a hold.
func (h *hold) stop(at time.Duration) {
	if h != nil && !h.ended {
		h.ended, h.over = true, at
	}
}

// outlived tells whether a successful operation shows that a lease was longer than its least length.
func (h *hold) outlived(op *history.Op) bool {
	return h.least && op.Outcome == history.OK && op.Return > h.end
}

func (h *hold) outsider() bool { return h != nil && h.others }

// promised returns the time up to which a holder can rely on its lease; Forever if the lease never ends.
func promised(op history.Op) time.Duration {
	if op.TTL == 0 {
		return history.Forever
	}
	return op.Call + surely(op.TTL)
}

// lasts gives a hold the lease of an operation. It sets h.end to the nominal end of the lease, and op.Until to the
// time up to which the holder can rely on it.
func (h *hold) lasts(op *history.Op) {
	op.Until, h.end = promised(*op), history.Forever
	if op.TTL > 0 {
		h.end = op.Call + op.TTL
	}
}

// times returns how often a token was granted.
func (r *Reader) times(token string) int { return r.grants[history.Hash(token)].times }

// grant begins a hold.
func (r *Reader) grant(b *book, a act) {
	q, op, token := a.q, a.op, a.token
	b.seen = true
	mark := history.Hash(token)
	n := r.grants[mark].times + 1
	r.grants[mark] = granted{n, r.dropped + len(r.ops)}
	r.Grants++
	h := &hold{token: token, mark: mark, key: op.Key, from: op.Call, call: op.Call, end: history.Forever,
		others: q == nil}
	if n > 1 {
		h.mark = history.Hash(token + "#" + strconv.Itoa(n))
	}
	op.Kind, op.Token = history.Acquire, h.mark
	r.Lease = max(r.Lease, op.TTL)
	h.lasts(&op)
	var w *waiter
	if q != nil {
		h.who, h.lost, h.words, h.least = r.who(q), op.Return == history.Forever, a.words, a.least
		r.share(b, h.who, token, q.Call)
		w = b.waiting(r, q, token, op.Call)
		op.Worker, h.client = w.worker, q.Client
		for _, name := range []string{"t" + token, "c" + h.who} {
			if o := b.waiters[name]; o != nil && o != w {
				b.forsake(r, o)
			}
		}
		b.served(w)
	} else {
		op.Worker = r.worker(op.Call, "")
	}
	h.worker = op.Worker
	h.op = r.put(q, op)
	if h.op >= 0 {
		h.id = r.ops[h.op].ID
	}
	b.lapse(r) // the previous hold may have ended by now
	b.holds = append(b.holds, h)
	r.begins(b, h, &op, w)
	if len(r.o.Data) > 0 && h.id != 0 && q != nil {
		r.spans[h.who] = append(r.spans[h.who], &span{hold: h, from: op.Return, to: history.Forever})
	}
}

// put adds an operation and returns its index; -1 if it is not kept. The request is nil if the client was not seen.
// If the request has no reply yet, a later reply may complete the operation.
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
		r.dies(op.Worker, at) // the client was killed while this operation was in progress
	}
	return n
}

// surely returns the shortest time that a lease can last on a server whose clock is wrong by Rate and Round.
func surely(ttl time.Duration) time.Duration {
	return max(ttl-ttl/time.Duration(1/Rate)-Round, 0)
}

// Rate and Round bound the error of a server's clock: the fraction by which it runs fast or slow, and its rounding.
const (
	Rate  = 0.001
	Round = 2 * time.Millisecond
)

func (r *Reader) extend(q *sighting, h *hold, op history.Op, guess bool) {
	op.Kind, op.Hold, op.Worker, op.Token, op.Until = history.Extend, h.id, h.worker, h.mark, promised(op)
	if late := h.outlived(&op); op.Outcome == history.OK {
		h.call = op.Call
		if h.lasts(&op); late {
			op.Outcome = history.Unknown
		}
	}
	delete(r.doubted, h)
	r.told(q, h, op, guess)
}

// free adds a release of a hold, and drops the hold unless the release was an inner one of a reentrant lock. If guess
// is true, only the connection shows which hold is meant.
func (r *Reader) free(b *book, q *sighting, h *hold, op history.Op, guess bool) {
	op.Kind, op.Hold, op.Worker, op.Token = history.Release, h.id, h.worker, h.mark
	if op.Outcome == history.OK {
		r.Releases++
	}
	if h.outlived(&op) {
		op.Outcome = history.Unknown
	}
	delete(r.doubted, h)
	r.told(q, h, op, guess)
	if op.Value == 0 {
		if v := &r.workers[h.worker]; guess || op.Outcome == history.Unknown { // the client may still have the lock
			v.free = max(v.free, min(h.end, h.call+keepBound))
		}
		for _, p := range r.spans[h.who] {
			if p.hold == h {
				p.to = min(p.to, op.Call)
			}
		}
		b.drop(r, h)
	}
}

// told adds an operation on a hold and returns its index; -1 if it is not kept. If guess is true, only the connection
// shows which hold is meant.
func (r *Reader) told(q *sighting, h *hold, op history.Op, guess bool) int {
	op.Key = h.key
	if h.id == 0 || op.Return < h.from || op.Call < h.from && op.Outcome == history.Failed {
		return -1
	}
	op.Call = max(op.Call, h.from) // it ended or extended the hold, so it was executed after the grant's call
	if h.lost {
		r.known[h.id] = true
	}
	n := r.put(q, op)
	if guess && n >= 0 {
		r.guesses = append(r.guesses, n)
	}
	return n
}

// drop removes a hold, so that another client can use its worker number.
func (b *book) drop(r *Reader, h *hold) {
	if i := slices.Index(b.holds, h); i >= 0 {
		b.holds = slices.Delete(b.holds, i, i+1)
		if !slices.ContainsFunc(b.orphans, func(o *orphan) bool { return o.hold == h }) {
			r.leave(h.worker)
		}
	}
}

// Crashed records that all programs, with their holders and waiters, were killed at a given time. Replies that come
// later reach no client.
func (r *Reader) Crashed(at time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.killed = max(r.now, at), at
	for _, b := range r.books {
		for _, h := range b.all() {
			r.dies(h.worker, at)
		}
		b.orphans = nil
		for _, w := range b.waiters {
			r.leaves(b, w)
			r.dies(w.worker, at)
		}
		clear(b.waiters)
		clear(b.latest)
	}
}

func (r *Reader) dies(w int32, at time.Duration) {
	if r.workers[w].free != history.Forever {
		r.add(r, history.Op{Kind: history.Crash, Worker: w, Key: -1, Call: at, Return: at, Outcome: history.OK})
		r.workers[w].free = history.Forever // no other client gets this number
	}
}

// sweep removes holds and waiters that ended, and the books of unused free keys.
func (r *Reader) sweep() {
	for _, l := range r.ledgers {
		if !l.none() || len(l.changes) > 0 || l.state.held() {
			l.book.used = r.now
		}
	}
	for s, b := range r.books {
		b.lapse(r)
		b.closed(r)
		for _, h := range slices.Clone(b.holds) {
			if h.end < r.now-keepBound {
				r.Unreleased++
				b.drop(r, h)
			}
		}
		for _, w := range b.waiters {
			if w.last < r.now-waiterBound {
				b.forsake(r, w)
			}
		}
		b.forget(r)
		if len(b.holds)+len(b.orphans)+len(b.waiters)+len(b.acts) == 0 &&
			(r.o.Rolling || r.o.Most == 0) && r.now-b.used > roundBound {
			delete(r.books, s)
		}
	}
	clear(r.closed)
	for at := range r.ledgers {
		if r.books[at.subject] == nil {
			delete(r.ledgers, at)
		}
	}
}
