package witness

import (
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
)

// ledger has the state of one key on one server, as its effects have left it. It also has the requests and
// effects that are not explained yet. An effect is explained when the request that caused it is found, or
// is known to be missing.
type ledger struct {
	place
	home    *server
	book    *book
	state   state
	known   bool            // an effect was seen, so the state is known
	waits   bool            // it has requests or changes that wait
	asked   bool            // this server received a request for the key
	since   time.Duration   // time of the last grant
	told    bool            // its missing expiry was reported
	touched bool            // an unseen command changed the key while a connection was not parsed
	marks   map[string]bool // tokens that stand for a mode of the lock, not for a client
	shaped  bool            // it is known whether a hash is a record: see shape
	least   time.Duration   // earliest possible time of the last explained effect
	changes []*change       // effects that were not explained yet, in the server's order
	room    [1]*change
	requests
}

// change is an effect on a key, or all effects that one transaction had on it.
type change struct {
	at       time.Duration
	tx       int64
	closed   bool // no more effects will join it
	commands [][]string
	first    [1][]string // memory for commands
}

func (r *Reader) ledger(at place) *ledger {
	l := r.ledgers[at]
	if l == nil {
		l = &ledger{place: at, home: r.server(at.server), book: made(r.books, at.subject, book{subject: at.subject}),
			requests: requests{causes: map[clue]*queue{}}}
		r.ledgers[at] = l
	}
	l.book.used = r.now
	return l
}

// answer adds the reply to a request. While effects cannot be seen, it immediately infers the outcome from the reply.
func (r *Reader) answer(e *entry) {
	l, s := e.ledger, e.sighting
	switch v := l.home; {
	case e.over: // the request already explains an earlier effect
	case !v.tapped || s.Call < v.from || v.from > 0 && !l.known: // the content of the key is not known yet
		l.drop(e)
		r.infer(l, s)
	default:
		l.answered(e, s.says == didNot && s.intent != runs)
	}
	r.settle(l, r.now)
}

// settle explains the effects in the server's order, up to the first one that must still wait. An effect waits for the
// rest of its transaction, and for replies to earlier requests. If it may be an expiry, it waits for later effects.
// Each of these waits has a bound.
func (r *Reader) settle(l *ledger, now time.Duration) {
	for len(l.changes) > 0 {
		c := l.changes[0]
		if !c.closed && now-c.at <= groupBound || now-c.at <= answerBound && l.unanswered(c) ||
			now-c.at <= effectBound && len(c.commands) == 1 && r.mayLapse(l, c) {
			r.wait(l, true)
			return
		}
		r.retire(l, c.at-effectBound)
		if l.changes = l.changes[1:]; len(l.changes) == 0 {
			l.changes = l.room[:0]
		}
		r.apply(l, c)
	}
	r.retire(l, now-effectBound)
	r.wait(l, !l.none() || len(l.changes) > 0)
}

func (r *Reader) wait(l *ledger, waits bool) {
	switch {
	case l.waits == waits:
	case waits:
		r.active[l] = true
	default:
		delete(r.active, l)
	}
	l.waits = waits
}

// unanswered tells whether a request that was called before an effect still lacks its reply.
func (l *ledger) unanswered(c *change) bool {
	e := l.waiting.at(0)
	return e != nil && e.Call < c.at
}

// retire stops waiting for effects of requests that were answered before a given time.
func (r *Reader) retire(l *ledger, by time.Duration) {
	for _, s := range l.retired(by) {
		r.effectless(l, s)
	}
}

// at returns the time at which a request ended. If its reply was lost, the request may take effect later, when the
// server responds again.
func (s *sighting) at() time.Duration {
	if s.Return == history.Forever {
		return s.lost + waiterBound
	}
	return s.Return
}

// diff is the difference between a key's states before and after a change.
type diff struct {
	granted, ended, deeper, shallower, written []string
	moved                                      bool // its expiry changed, or its token was written again
	before, after                              state
}

// names returns the tokens that identify the request that caused the change.
func (d *diff) names() []string {
	all := slices.Concat(d.granted, d.written, d.ended, d.shallower)
	if d.moved {
		for _, o := range d.after.owners {
			all = append(all, o.token)
		}
	}
	return all
}

// execute returns how a change changes the state of a key. The result is valid until the next change of any key.
func (r *Reader) execute(l *ledger, c *change) *diff {
	d := &r.diff
	*d = diff{granted: d.granted[:0], ended: d.ended[:0], deeper: d.deeper[:0], shallower: d.shallower[:0],
		before: l.state}
	if slices.ContainsFunc(c.commands, func(args []string) bool { return partial(args[0]) }) {
		d.before = l.state.clone()
	}
	l.state.wrote = l.state.wrote[:0]
	for _, args := range c.commands {
		l.state.execute(args)
	}
	d.after, d.written = l.state, l.state.wrote
	for _, o := range d.after.owners {
		switch before, had := d.before.owners.of(o.token); {
		case !had:
			d.granted = append(d.granted, o.token)
		case d.after.scored:
		case o.count > before:
			d.deeper = append(d.deeper, o.token)
		case o.count < before:
			d.shallower = append(d.shallower, o.token)
		}
	}
	for _, o := range d.before.owners {
		if _, has := d.after.owners.of(o.token); !has {
			d.ended = append(d.ended, o.token)
		}
	}
	// the same expiry may be set again within a millisecond
	expires := func(args []string) bool { return understand(args).intent == extends }
	d.moved = len(d.granted)+len(d.ended)+len(d.deeper)+len(d.shallower) == 0 && d.after.held() &&
		(d.before.until != d.after.until || len(d.written) > 0 || slices.ContainsFunc(c.commands, expires))
	return d
}

// apply finds the request that caused a change, if any, and adds the change to the book.
func (r *Reader) apply(l *ledger, c *change) {
	// If alone is true, no request names the key: either no requests are read, or a script computes the key's name.
	alone := r.o.Alone || !l.asked && r.o.Sites == 1 && !l.home.replica
	// the key had expired: the server deleted it first, and then executed the script's own commands
	if len(c.commands) > 1 && understand(c.commands[0]).intent == frees && r.mayLapse(l, c) {
		first := change{at: c.at, commands: c.commands[:1]}
		c.commands = c.commands[1:]
		d := r.execute(l, &first)
		r.watch(l, &first, d, nil)
		if l.asked {
			r.tell(l, &first, d, nil)
		} else if alone {
			r.overheard(l, &first, d)
		}
	}
	l.shape(c)
	d := r.execute(l, c)
	if name := d.after.strange; name != d.before.strange {
		r.Strange, r.StrangeAs = r.Strange+1, name
	}
	known := l.known
	l.known = true
	switch {
	case alone:
		r.watch(l, c, d, nil)
		r.Outsiders++
		r.overheard(l, c, d)
		return
	case !l.asked || l.home.replica: // a replica's stream, or a key that only other clients use
		r.watch(l, c, d, nil)
		return
	}
	e := r.cause(l, c, d)
	var q *sighting
	if e != nil {
		q = e.sighting
	}
	if v := l.home; q == nil && v.from > 0 && (c.at < v.from+effectBound || !known) {
		r.watch(l, c, d, nil)
		return // the request was answered while effects could not be seen
	}
	if q != nil {
		l.least = max(l.least, q.Call)
		l.home.ran(c.at, q.Call)
		l.drop(e)
		r.retire(l, q.Call-1) // any effect of a request that was answered by then would have come earlier
		l.mark(q, d)
		r.learn(q, d)
	}
	r.watch(l, c, d, q)
	n := 0
	for _, o := range d.after.owners {
		if !l.marks[o.token] {
			n++
		}
	}
	r.Permits = max(r.Permits, n)
	r.tell(l, c, d, q)
}

// mark removes tokens that stand for a mode. A script writes such a token in addition to the
// token among its arguments.
func (l *ledger) mark(q *sighting, d *diff) {
	if q.intent == runs && len(d.granted) > 1 && q.names(d.granted) {
		if l.marks == nil {
			l.marks = map[string]bool{}
		}
		for _, token := range d.granted {
			l.marks[token] = l.marks[token] || !q.hasToken(token)
		}
	}
	mark := func(token string) bool { return l.marks[token] }
	d.granted, d.ended = slices.DeleteFunc(d.granted, mark), slices.DeleteFunc(d.ended, mark)
	d.deeper, d.shallower, d.written = slices.DeleteFunc(d.deeper, mark), slices.DeleteFunc(d.shallower, mark),
		slices.DeleteFunc(slices.Clone(d.written), mark)
}

// may tells whether a request can have caused a change. Suppose that two requests certainly had effects that have not
// come yet. If one was answered before the other was called, its effect comes first.
func (r *Reader) may(l *ledger, c *change, d *diff, e *entry) bool {
	other := l.certain.at(0)
	if other != nil && other.sighting == e.sighting {
		other = l.certain.at(1)
	}
	return e.Call <= c.at && (other == nil || e.Call <= other.Return) && e.returned() >= l.least && e.fits(d) &&
		(len(d.ended) == 0 || len(d.granted) > 0 || !r.lapsed(l, c, d, e.sighting))
}

func (s *sighting) returned() time.Duration {
	if !s.answered {
		return history.Forever
	}
	return s.Return
}

// fits tells whether a change agrees with a request and its reply.
func (s *sighting) fits(d *diff) bool {
	if s.says == didNot && s.intent != runs || s.answered && s.says == didNot && len(d.granted) > 0 &&
		!s.names(d.granted) {
		return false
	}
	switch s.intent {
	case runs:
		return true
	case tries:
		return len(d.granted) == 1 && s.names(d.granted)
	case sets, renews, swaps:
		return s.names(d.written)
	case extends: // an expiry in the past deletes the key
		return d.moved || s.until > 0 && len(d.ended) > 0 && len(d.written) == 0
	case frees:
		return len(d.ended) > 0 && len(d.written) == 0
	case enters:
		return s.names(d.written)
	case leaves:
		return s.names(d.ended) || s.names(d.shallower)
	}
	return false
}

// names tells whether one of the tokens is an argument of the request.
func (s *sighting) names(tokens []string) bool { return slices.ContainsFunc(tokens, s.hasToken) }

// lapsed tells whether the deletion of a key was an expiry, although a request could explain it. It was an expiry if
// the lease had certainly ended. If the lease may have ended, it was an expiry in two cases: the request had no
// effect, or a later deletion needs that request as its cause.
func (r *Reader) lapsed(l *ledger, c *change, d *diff, s *sighting) bool {
	if d.before.until == 0 {
		return false
	}
	from, to := r.ours(l.home, d.before.until)
	switch {
	case s.says != did:
		return s.Call > to || s.says == didNot && c.at >= from
	case s.intent == runs && r.times(d.ended[0]) == 1 && s.hasToken(d.ended[0]):
		return s.Call > to
	}
	return s.intent != frees && s.Call > to || c.at >= from && r.needed(l, s)
}

// mayLapse tells whether a change deletes a key whose lease may have ended. Then the deletion may be an expiry. The
// changes after it will show whether it is.
func (r *Reader) mayLapse(l *ledger, c *change) bool {
	if l.state.until == 0 || !c.deletes() {
		return false
	}
	from, _ := r.ours(l.home, l.state.until)
	return c.at >= from
}

func (c *change) deletes() bool {
	return slices.ContainsFunc(c.commands, func(args []string) bool { return understand(args).intent == frees })
}

// freeing lists the kinds of requests that may delete a key.
var freeing = []clue{{affirmed, frees, ""}, {affirmed, runs, ""}, {unheard, frees, ""}, {unheard, runs, ""}}

// needed tells whether only this request can explain a later deletion of the key, before its lease ended.
func (r *Reader) needed(l *ledger, s *sighting) bool {
	after, ends := l.state.clone(), 0
	for _, c := range l.changes { // the change that is being applied is no longer in this list
		from := time.Duration(0)
		if after.until != 0 {
			from, _ = r.ours(l.home, after.until)
		}
		if len(c.commands) == 1 && c.deletes() && after.held() && c.at < from && s.Call <= c.at {
			ends++
			others := 0
			for _, of := range freeing {
				if q := l.causes[of]; q != nil {
					for e := range q.all() {
						if e.sighting != s && (e.says == did || !e.answered) && e.Call <= c.at {
							others++
						}
					}
				}
			}
			if others < ends {
				return true
			}
		}
		for _, args := range c.commands {
			after.execute(args)
		}
	}
	return false
}

// ours converts a time on a server's clock to a range of times on our clock.
func (r *Reader) ours(s *server, ms int64) (from, to time.Duration) {
	at := time.Duration(ms)*time.Millisecond - time.Duration(r.o.Epoch.UnixNano())
	return at - s.ahead - time.Millisecond, at - s.behind + time.Millisecond
}

// lease returns the shortest lease that a change can have set; 0 = the lease has no end. An argument of the request is
// used if it fits the expiry. Otherwise the result is the time that was left when the effect was known. A lease begins
// after the request's call, and before its reply and the reading of its effect.
func (r *Reader) lease(l *ledger, c *change, until int64, s *sighting) time.Duration {
	if until == 0 {
		return 0
	}
	from, to := r.ours(l.home, until)
	last := c.at
	if s != nil {
		last = min(last, s.returned())
		all := []time.Duration{s.ttl}
		if s.intent == runs {
			for _, a := range s.args {
				if n, err := strconv.ParseInt(a, 10, 40); err == nil && n > 0 {
					all = append(all, time.Duration(n)*time.Millisecond, time.Duration(n)*time.Second)
				}
			}
		}
		for _, ttl := range all {
			if ttl > 0 && from-ttl <= last && to-ttl >= s.Call {
				return ttl
			}
		}
	}
	return max(from-last, time.Millisecond)
}
