package witness

import (
	"slices"
	"strconv"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// act is a grant, an extension or a release of a lock, by a request or by a client that was not seen.
type act struct {
	kind   history.Kind
	server int
	q      *sighting // nil = the client was not seen
	token  string
	hold   *hold // nil for a grant
	victim *hold // for a release: the hold of another client that it ended, if any
	guess  bool  // only the connection shows which hold is meant
	words  bool  // only the command's words show that it had an effect
	says   says
	least  bool       // its lease may be longer than that of the operation
	op     history.Op // the operation, as far as it is known
}

// base returns the operation for a request. Without a request, it estimates the time from the change.
func (r *Reader) base(l *ledger, c *change, q *sighting) history.Op {
	op := history.Op{Key: r.page(l.book), Outcome: history.OK}
	if q == nil {
		op.Call, op.Return = min(max(l.least, l.home.since(c.at)), c.at), c.at
		return op
	}
	op.Call, op.Return = q.Call, q.Return
	if !q.answered || q.Lost || q.Return == history.Forever {
		op.Return, op.Outcome = history.Forever, history.Unknown
	}
	return op
}

// tell turns an explained change into acts.
func (r *Reader) tell(l *ledger, c *change, d *diff, q *sighting) {
	op := r.base(l, c, q)
	if lapse := len(d.granted) == 0 && len(d.ended) > 0 && r.expired(l, c, d); q == nil && !lapse &&
		(d.moved || len(d.granted)+len(d.ended)+len(d.deeper) > 0) {
		r.Outsiders++
		r.touched(l, op.Key)
	}
	switch {
	case len(d.granted) > 0:
		r.tellGrant(l, c, d, q, op)
	case len(d.ended) > 0:
		for _, token := range d.ended {
			r.tellEnd(l, c, d, q, op, token)
		}
	case len(d.deeper)+len(d.shallower) > 0:
		r.tellCount(l, c, d, q, op)
	case d.moved && q != nil:
		r.tellMove(l, c, d, q, op)
	case d.moved && d.after.until > 0 && (d.before.until == 0 || d.after.until < d.before.until):
		for _, o := range d.after.owners {
			r.taken(l, o.token, op, "was given an earlier end")
		}
	}
}

// tellGrant handles new tokens. Tokens that disappear in the same change were overwritten.
func (r *Reader) tellGrant(l *ledger, c *change, d *diff, q *sighting, op history.Op) {
	b := l.book
	if q != nil && q.intent == swaps && len(d.ended) == 1 && len(d.granted) == 1 && r.o.Sites == 1 &&
		r.swapped(l, d, q, op) {
		return
	}
	for _, token := range d.ended {
		if q == nil && !r.expired(l, c, d) {
			r.taken(l, token, op, "was overwritten")
		}
		for _, h := range b.holds {
			if h.token == token {
				h.stop(c.at)
			}
		}
	}
	for _, token := range d.granted {
		op.TTL = r.lease(l, c, d.after.until, q)
		if d.after.counts {
			op.Value, _ = d.after.owners.of(token)
		}
		if h := b.of(token); h != nil && q != nil && h.ended && r.recreates(q) && r.times(token) == 1 {
			h.ended = false
			r.do(b, act{kind: history.Extend, server: l.server, q: q, token: token, hold: h, says: did, op: op})
			continue
		}
		if q != nil && q.intent == swaps && d.before.held() {
			op.Outcome = history.Unknown // its client decides from the old value whether it has the lock
		}
		if d.after.scored || len(d.after.owners) > 1 {
			op.Permits = 1
		}
		r.do(b, act{kind: history.Acquire, server: l.server, q: q, token: token, says: did, op: op})
	}
}

// recreates tells whether a command extends a hold if it writes the hold's token again after the key was gone.
func (r *Reader) recreates(q *sighting) bool {
	switch q.intent {
	case sets, renews:
		return true
	case runs:
		s := r.scripts[q.script]
		return s != nil && s.extends && !s.grants
	}
	return false
}

// expired tells whether a deleted key's lease may have ended before the deletion.
func (r *Reader) expired(l *ledger, c *change, d *diff) bool {
	if d.before.until == 0 {
		return false
	}
	from, _ := r.ours(l.home, d.before.until)
	return c.at >= from
}

// tellEnd handles a token that has disappeared.
func (r *Reader) tellEnd(l *ledger, c *change, d *diff, q *sighting, op history.Op, token string) {
	b := l.book
	if r.o.Sites > 1 { // the hold is found later, when the grant is known
		if q != nil {
			r.do(b, act{kind: history.Release, server: l.server, q: q, token: token, says: did, op: op})
		} else if r.expired(l, c, d) {
			r.Expiries++
		}
		return
	}
	owner := b.owner(token)
	if q == nil {
		switch {
		case r.expired(l, c, d):
			r.Expiries++
		case owner.outsider():
			r.do(b, act{kind: history.Release, server: l.server, token: token, hold: owner, says: did, op: op})
		default:
			r.taken(l, token, op, "ended")
		}
		owner.stop(c.at)
		return
	}
	h, guess := r.holder(b, q, owner)
	owner.stop(c.at)
	switch {
	case h == nil && owner == nil:
		return
	case h == nil:
		r.Ambiguous++
		op.Outcome = history.Unknown
		r.do(b, act{kind: history.Release, server: l.server, q: q, token: token, hold: owner, op: op})
		return
	}
	a := act{kind: history.Release, server: l.server, q: q, token: h.token, hold: h, guess: guess && h != owner,
		says: did, op: op}
	if h != owner {
		a.victim = owner
	}
	if h == owner && r.stranger(q, owner) {
		r.orphaned(b, &a)
		return
	}
	before := len(r.ops)
	r.do(b, a)
	if n := len(r.ops) - 1; guess && a.victim != nil && n >= before {
		r.victims[n] = owner
		r.doubted[owner] = append(r.doubted[owner], n)
	}
}

// taken adds an incident: a key changed before its lease ended, and the command that changed it was not seen.
func (r *Reader) taken(l *ledger, token string, op history.Op, what string) {
	if h := l.book.owner(token); h != nil && !h.others && r.o.Sites == 1 {
		r.incident(r, l.server, op.Key, op.Call, op.Return, "the key of page "+strconv.Itoa(int(op.Key))+" "+what+
			" on a server before its lease was over, and no command that was seen did that")
	}
}

// touched records that an unseen command changed a lock, if some connection to its server is not parsed. Since the
// start of that connection, other changes may also have been missed.
func (r *Reader) touched(l *ledger, key int32) {
	if v := l.home; v.unseen > 0 && !l.touched {
		l.touched = true
		r.blind = append(r.blind, history.Op{Key: key, Value: int64(l.server), Call: v.unseen})
	}
}

// tellCount handles a reentrant lock whose owner has entered again, or has left an inner level.
func (r *Reader) tellCount(l *ledger, c *change, d *diff, q *sighting, op history.Op) {
	b := l.book
	r.Reentrant = true
	for _, token := range d.deeper {
		h := b.of(token)
		if h == nil || q == nil || h.id == 0 {
			continue
		}
		op.Kind, op.Hold, op.Worker, op.Token = history.Acquire, h.id, h.worker, h.mark
		op.Value, _ = d.after.owners.of(token)
		if op.TTL = r.lease(l, c, d.after.until, q); op.TTL > 0 {
			h.lasts(&op)
		}
		r.told(q, h, op, false)
	}
	for _, token := range d.shallower {
		if h := b.of(token); h != nil && q != nil {
			op.TTL, op.Until = 0, 0
			op.Value, _ = d.after.owners.of(token)
			r.free(b, q, h, op, false)
		}
	}
}

// tellMove handles a new expiry, or a token that was written again.
func (r *Reader) tellMove(l *ledger, c *change, d *diff, q *sighting, op history.Op) {
	b := l.book
	var owner *hold
	for _, o := range d.after.owners {
		owner = b.owner(o.token)
	}
	op.TTL = r.lease(l, c, d.after.until, q)
	if r.o.Sites > 1 {
		for _, o := range d.after.owners {
			r.do(b, act{kind: history.Extend, server: l.server, q: q, token: o.token, says: did, op: op})
		}
		return
	}
	// all clients use the same token, so a SET by another client is a new grant
	if q.intent == sets && owner != nil && owner.who != r.who(q) && r.times(owner.token) > 1 {
		owner.stop(q.Call)
		r.do(b, act{kind: history.Acquire, server: l.server, q: q, token: owner.token, says: did, op: op})
		return
	}
	h, guess := r.holder(b, q, owner)
	if h == nil {
		if owner != nil {
			r.Ambiguous++
			op.Outcome = history.Unknown
			r.do(b, act{kind: history.Extend, server: l.server, q: q, token: owner.token, hold: owner, op: op})
		}
		return
	}
	r.do(b, act{kind: history.Extend, server: l.server, q: q, token: h.token, hold: h, guess: guess && h != owner,
		says: did, op: op})
}

// learn records the effects of a script, and the position of the token among its arguments.
func (r *Reader) learn(q *sighting, d *diff) {
	if q.intent != runs {
		return
	}
	s := r.script(q.script)
	s.grants = s.grants || len(d.granted)+len(d.deeper) > 0
	s.frees = s.frees || len(d.ended)+len(d.shallower) > 0 && len(d.granted) == 0
	s.extends = s.extends || d.moved
	for _, token := range slices.Concat(d.granted, d.ended, d.deeper, d.shallower, d.written) {
		if i := slices.Index(q.args, token); i >= 0 {
			s.token = i
		}
	}
	if d.moved && s.token < 0 {
		for _, o := range d.after.owners {
			s.token = slices.Index(q.args, o.token)
		}
	}
}

// read judges a script that has had no effect so far by its text. If the text only deletes, and one of the arguments
// is a holder's token, it returns the script as one that releases. Otherwise it returns nil.
func (s *script) read(b *book, args []string) *script {
	token := slices.IndexFunc(args, func(arg string) bool {
		return b.of(arg) != nil || slices.ContainsFunc(b.orphans, func(o *orphan) bool { return o.hold.token == arg })
	})
	if !s.says("del", "unlink", "rem") || s.says("set", "incr", "add") || token < 0 {
		return nil
	}
	return &script{token: token, frees: true}
}

func (r *Reader) script(id string) *script {
	if len(r.scripts) >= mostScripts {
		clear(r.scripts) // the script texts contain numbers, so that each is different
	}
	return made(r.scripts, id, script{token: -1})
}

const mostScripts = 4096

// effectless handles a request that was answered and changed nothing.
func (r *Reader) effectless(l *ledger, s *sighting) {
	if s.Lost || s.Return == history.Forever {
		return // its sender does not know that it had no effect
	}
	if k := s.Reply.Kind; s.says == didNot && (k == wire.Error || k == wire.NotExecuted) {
		return
	}
	op := history.Op{Key: r.page(l.book), Call: s.Call, Return: s.Return, Outcome: history.Failed,
		Reason: history.Lost, TTL: s.ttl}
	switch s.intent {
	case tries:
		if s.says == didNot && (l.state.number || !s.number) {
			op.Reason = history.Busy
			r.do(l.book, act{kind: history.Acquire, server: l.server, q: s, token: s.token, says: didNot, op: op})
		}
	case frees, extends, renews, leaves:
		if s.says == didNot {
			r.inferHeld(l, s, act{server: l.server, q: s, says: didNot, op: op})
		}
	case runs:
		r.idleScript(l, s, op)
	}
}

// idleScript handles a script that changed nothing. The script's earlier effects show its purpose.
func (r *Reader) idleScript(l *ledger, s *sighting, op history.Op) {
	k := r.scripts[s.script]
	if k != nil && k.token < 0 {
		k = k.read(l.book, s.args)
	}
	if k == nil || k.token < 0 || k.token >= len(s.args) {
		return
	}
	token := s.args[k.token]
	h := l.book.of(token)
	if h == nil && s.says == didNot && !k.grants && (k.frees || k.extends) {
		h = r.robbed(l.book, func(o *orphan) bool { return o.hold.token == token && o.answered(s.Return) })
	}
	a := act{server: l.server, q: s, token: token, hold: h, says: didNot, op: op}
	switch {
	case r.o.Sites > 1 && (k.frees || k.extends) && !k.grants && s.says == didNot:
		if a.kind = history.Release; !k.frees {
			a.kind = history.Extend
		}
	case r.o.Sites > 1 && !k.grants:
		return
	case h != nil && k.frees && !k.grants && s.says == didNot && !h.lost:
		a.kind = history.Release
	case h != nil && k.extends && !k.grants && s.says == didNot && !h.lost:
		a.kind = history.Extend
	case (h == nil || r.o.Sites > 1) && k.grants:
		a.kind, a.op.Reason = history.Acquire, history.Busy
		a.op.TTL = 0
	default:
		return
	}
	r.do(l.book, a)
}
