package witness

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// infer makes acts (grants, extensions and releases) from a request and its reply alone, because effects are not
// seen. It goes by the words of the command, or by a script's text. If that text is unknown, the script may have
// done anything to a hold.
func (r *Reader) infer(l *ledger, s *sighting) {
	if k := s.Reply.Kind; k == wire.Error || k == wire.NotExecuted || !s.answered {
		return
	}
	if s.number { // it may be a counter
		if l.state.strange == "" {
			l.state.strange = s.Args[0]
			r.Strange, r.StrangeAs = r.Strange+1, s.Args[0]
		}
		return
	}
	op := history.Op{Key: r.page(l.book), Call: s.Call, Return: s.Return, Outcome: history.OK, TTL: s.ttl}
	if s.Lost || s.Return == history.Forever {
		op.Return, op.Outcome = history.Forever, history.Unknown
	} else if s.says == didNot {
		op.Outcome, op.Reason = history.Failed, history.Lost
	}
	a := act{server: l.server, q: s, token: s.token, words: true, says: s.says, op: op}
	if a.says == nothing {
		a.says, a.op.Outcome = did, history.Unknown
	}
	switch s.intent {
	case tries:
		a.kind, a.op.Reason = history.Acquire, history.None
		r.do(l.book, a)
	case sets, renews, extends, frees, leaves:
		r.inferHeld(l, s, a)
	case enters:
		a.kind, a.token = history.Acquire, s.args[min(1, len(s.args)-1)]
		a.op.Outcome, a.op.TTL = history.Unknown, time.Millisecond // the capacity of the collection is unknown
		r.do(l.book, a)
	case runs:
		r.inferScript(l, s, a)
	}
}

// inferHeld infers a release or an extension from a command on a lock that is held.
func (r *Reader) inferHeld(l *ledger, s *sighting, a act) {
	if s.says == didNot && s.intent != leaves {
		a.hold = r.robbed(l.book, func(o *orphan) bool {
			return o.hold.who == r.who(s) && !o.again && r.sharing == 0 && len(l.book.holds) == 0 &&
				o.answered(s.Call)
		})
	}
	h, guess := a.hold, false
	if h == nil {
		h, guess = r.holder(l.book, s, nil)
	}
	if h == nil {
		if s.intent == sets && s.says == did { // SET without an option writes the key in any case
			a.kind = history.Acquire
			r.do(l.book, a)
			return
		}
		if s.intent == frees && s.says == did {
			r.Ambiguous++
		}
		return
	}
	a.kind, a.hold, a.token, a.guess = history.Release, h, h.token, guess
	if s.intent == extends || s.intent == sets || s.intent == renews {
		a.kind = history.Extend
	}
	if a.op.Outcome != history.Failed || a.op.Call > h.call {
		r.do(l.book, a)
	}
}

// inferScript handles a script by its text.
func (r *Reader) inferScript(l *ledger, s *sighting, a act) {
	k, h := r.script(s.script), (*hold)(nil)
	for _, arg := range s.args {
		if h = l.book.of(arg); h != nil {
			break
		}
	}
	a.hold = h
	switch {
	case k.text == "" && h != nil:
		a.kind, a.token, a.op.Outcome, a.op.Reason, a.says = history.Release, h.token, history.Unknown, history.None,
			did
		r.Ambiguous++
	case k.says("del", "unlink", "zrem", "srem") && h != nil:
		if k.says("incr", "decr") && s.says == didNot { // it may have left an inner level of a lock that counts
			return
		}
		a.kind, a.token = history.Release, h.token
	case k.says("hincrby", "hset", "zadd", "sadd", "setnx", "'set'", `"set"`) && h == nil && len(s.args) > 0:
		a.kind, a.op.TTL, a.token = history.Acquire, shortest(s.args), longest(s.args)
		if a.op.Reason = history.None; k.says("zadd", "sadd") && a.says == did {
			a.op.Outcome = history.Unknown // the capacity of the collection is unknown
		}
		a.op.TTL, a.least = max(a.op.TTL, time.Millisecond), true
	case k.says("expire") && h != nil:
		a.kind, a.token, a.op.TTL = history.Extend, h.token, max(shortest(s.args), time.Millisecond)
		a.least = true
	default:
		r.Strange++
		return
	}
	r.do(l.book, a)
}

// shortest returns the shortest lease that an argument can mean, with numbers read as milliseconds; 0 = no argument is
// a number.
func shortest(args []string) (ttl time.Duration) {
	for _, a := range args {
		if n, err := strconv.ParseInt(a, 10, 40); err == nil && n > 0 &&
			(ttl == 0 || time.Duration(n)*time.Millisecond < ttl) {
			ttl = time.Duration(n) * time.Millisecond
		}
	}
	return ttl
}

// longest returns the longest argument. If effects are not seen, it is taken for the token, because tokens
// are longer than numbers.
func longest(args []string) string {
	return slices.MaxFunc(args, func(a, b string) int { return len(a) - len(b) })
}

// unheard explains the requests to a server by their replies alone, because its stream broke:
// their effects will not come.
func (r *Reader) unheard(server int) {
	for at, l := range r.ledgers {
		if at.server != server {
			continue
		}
		for _, c := range l.changes {
			r.apply(l, c)
		}
		l.changes = nil
		for _, e := range slices.AppendSeq(slices.Collect(l.heard.all()), l.lost.all()) {
			if e.says != didNot || e.intent == runs {
				l.drop(e)
				r.infer(l, e.sighting)
			}
		}
	}
}

// deafened records the start of a time in which any lock may change unseen. Such a time begins if a connection to the
// server is not parsed, and the server's effects are not read either.
func (r *Reader) deafened(server int) {
	if v := r.server(server); v.unseen > 0 && !v.tapped && !v.replica {
		r.blind = append(r.blind, history.Op{Key: -1, Value: int64(server), Call: r.now})
	}
}

// forget drops the state of a server's keys, because effects are missing. If the server kept running, a hold may have
// ended unseen. If it was restarted, it may have lost its keys, which is an incident. If it follows another server
// now, its keys no longer count.
func (r *Reader) forget(e wire.Event) {
	for l := range maps.Values(r.ledgers) {
		if l.server != e.Server {
			continue
		}
		if l.state.held() && e.Another && !e.Replica {
			r.Adrift++
		}
		l.state, l.known = state{}, false
		for _, h := range l.book.holds {
			if from := max(l.least, h.call+1); !e.Another {
				op := history.Op{Kind: history.Release, Hold: h.id, Worker: h.worker, Token: h.mark, Call: from,
					Return: max(r.now, from)}
				r.told(nil, h, op, false)
				h.stop(r.now)
			}
		}
	}
	if e.Another && !e.Replica && !r.o.Ours {
		r.incident(r, e.Server, -1, r.server(e.Server).lost, e.At, "a server was restarted, or began another history")
	}
}
