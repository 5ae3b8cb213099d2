package witness

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"hammerlock/history"
)

// ledger has the state of a key on a server, as effects have made it, with the requests and effects that were not
// explained yet.
type ledger struct {
	place
	book    *book
	state   state
	known   bool            // an effect was seen, so the state is known
	asked   bool            // a request for it was seen on this server
	since   time.Duration   // time of the last grant
	told    bool            // it was reported that it has no expiry
	touched bool            // an unseen command has changed it, perhaps of a connection that is not parsed
	marks   map[string]bool // tokens that stand for a mode rather than for a client
	least   time.Duration   // the last explained effect was not before this time
	changes []*change       // effects that were not explained yet, in the order of the server
	room    [1]*change      // memory for the usual single change
	requests
}

// change is an effect on a key, or all effects of a transaction on it.
type change struct {
	at       time.Duration
	tx       int64
	closed   bool // no further effect belongs to it
	commands [][]string
}

func (r *Reader) ledger(at place) *ledger {
	b := r.book(at.subject)
	if l := r.ledgers[at]; l != nil {
		return l
	}
	l := &ledger{place: at, book: b, requests: requests{causes: map[clue]*queue{}}}
	r.ledgers[at] = l
	return l
}

// answer adds the reply to a request. If effects cannot be seen, nothing else will be known about it.
func (r *Reader) answer(e *entry) {
	l, s := e.ledger, e.sighting
	switch v := r.server(l.server); {
	case e.over: // an effect that had to be explained before was its effect
	case !v.tapped || s.Call < v.from || v.from > 0 && !l.known: // the content of the key is not known yet
		l.drop(e)
		r.infer(l, s)
	default:
		l.answered(e, s.says == didNot && s.intent != runs)
	}
	r.active[l] = true
	r.settle(l, r.now)
}

// settle explains an effect when all requests that may have caused it are answered.
func (r *Reader) settle(l *ledger, now time.Duration) {
	for len(l.changes) > 0 {
		c := l.changes[0]
		if !c.closed && now-c.at <= groupBound || now-c.at <= answerBound && l.waits(c) || now-c.at <= effectBound &&
			len(c.commands) == 1 && r.mayLapse(l, c) {
			return
		}
		r.retire(l, c.at-effectBound)
		if l.changes = l.changes[1:]; len(l.changes) == 0 {
			l.changes = l.room[:0]
		}
		r.apply(l, c)
	}
	r.retire(l, now-effectBound)
	if l.none() && len(l.changes) == 0 {
		delete(r.active, l)
	}
}

// waits tells whether a request that was called before an effect has no reply yet.
func (l *ledger) waits(c *change) bool {
	e := l.waiting.at(0)
	return e != nil && e.Call < c.at
}

// retire gives up waiting for effects of requests that were answered before a time.
func (r *Reader) retire(l *ledger, by time.Duration) {
	for _, s := range l.retired(by) {
		r.effectless(l, s)
	}
}

// at is when a request was over. If its reply was lost, it may have its effect when the server is responsive again.
func (s *sighting) at() time.Duration {
	if s.Return == history.Forever {
		return s.lost + waiterBound
	}
	return s.Return
}

// diff is the difference that a change has made to a key.
type diff struct {
	granted, ended, deeper, shallower, written []string
	moved                                      bool // its expiry was changed, or it was written again
	before, after                              state
}

// names lists the tokens by which the request that caused the change can be recognized.
func (d *diff) names() []string {
	all := slices.Concat(d.granted, d.written, d.ended, d.shallower)
	if d.moved {
		all = append(all, slices.Collect(maps.Keys(d.after.owners))...)
	}
	return all
}

// execute applies a change to the state, and returns the difference.
func (l *ledger) execute(c *change) (d diff) {
	d.before = l.state
	if slices.ContainsFunc(c.commands, func(args []string) bool { return partial[args[0]] }) {
		d.before = l.state.clone()
	}
	l.state.wrote = nil
	for _, args := range c.commands {
		l.state.execute(args)
	}
	d.after, d.written = l.state, l.state.wrote
	for _, token := range d.after.tokens() {
		n := d.after.owners[token]
		switch before, had := d.before.owners[token]; {
		case !had:
			d.granted = append(d.granted, token)
		case d.after.scored:
		case n > before:
			d.deeper = append(d.deeper, token)
		case n < before:
			d.shallower = append(d.shallower, token)
		}
	}
	for _, token := range d.before.tokens() {
		if _, has := d.after.owners[token]; !has {
			d.ended = append(d.ended, token)
		}
	}
	d.moved = len(d.granted)+len(d.ended)+len(d.deeper)+len(d.shallower) == 0 && d.after.held() &&
		(d.before.until != d.after.until || len(d.written) > 0)
	return d
}

// apply explains a change by the request that has caused it, if any, and adds it to the book.
func (r *Reader) apply(l *ledger, c *change) {
	// No request names the key: either no requests are read, or a script computes the key's name.
	alone := r.o.Alone || !l.asked && r.o.Sites == 1 && !r.server(l.server).replica
	// a command found that the lease had ended
	if len(c.commands) > 1 && understand(c.commands[0]).intent == frees && r.mayLapse(l, c) {
		first := change{at: c.at, commands: c.commands[:1]}
		c.commands = c.commands[1:]
		d := l.execute(&first)
		r.watch(l, &first, &d)
		if l.asked {
			r.tell(l, &first, &d, nil)
		} else if alone {
			r.overheard(l, &first, &d)
		}
	}
	strange := l.state.strange
	d := l.execute(c)
	if l.state.strange && !strange {
		r.Strange++
	}
	known := l.known
	l.known = true
	switch {
	case alone:
		r.watch(l, c, &d)
		r.Outsiders++
		r.overheard(l, c, &d)
		return
	case !l.asked || r.server(l.server).replica: // a replica's stream, or a key that only other clients use
		r.watch(l, c, &d)
		return
	}
	e := l.first(&d, func(e *entry) bool { return r.may(l, c, &d, e) }) // effects come in the order of execution
	var q *sighting
	if e != nil {
		q = e.sighting
	}
	if v := r.server(l.server); q == nil && v.from > 0 && (c.at < v.from+effectBound || !known) {
		r.watch(l, c, &d)
		return // the request was answered while effects could not be seen
	}
	if q != nil {
		l.least = max(l.least, q.Call)
		r.server(l.server).ran(c.at, q.Call)
		l.drop(e)
		r.retire(l, q.Call-1) // effects of requests that were answered by then would have come before this one
		l.mark(q, &d)
		r.learn(q, &d)
	}
	r.watch(l, c, &d)
	n := 0
	for token := range d.after.owners {
		if !l.marks[token] {
			n++
		}
	}
	r.Permits = max(r.Permits, n)
	r.tell(l, c, &d, q)
}

// mark removes tokens from a change that stand for a mode: a script has written them in addition to the token that it
// was given.
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

// may tells whether a request can have caused a change. If two requests certainly had effects that are still to come,
// and one was answered before the other was called, its effect comes first.
func (r *Reader) may(l *ledger, c *change, d *diff, e *entry) bool {
	other := l.certain.at(0)
	if other != nil && other.sighting == e.sighting {
		other = l.certain.at(1)
	}
	return e.Call <= c.at && (other == nil || e.Call <= other.Return) && e.returned() >= l.least && e.fits(d) &&
		(len(d.ended) == 0 || len(d.granted) > 0 || !r.lapsed(l, c, d, e.sighting))
}

// returned is when a request was answered; history.Forever if it was not.
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
		return slices.Equal(d.granted, []string{s.token})
	case sets, renews, swaps:
		return slices.Contains(d.written, s.token)
	case extends:
		return d.moved
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

// lapsed tells whether a key has expired although a request could explain its end: the lease had certainly ended; or it
// may have ended, and the request says that it did nothing, or is needed to explain a later end.
func (r *Reader) lapsed(l *ledger, c *change, d *diff, s *sighting) bool {
	if d.before.until == 0 {
		return false
	}
	from, to := r.ours(l.server, d.before.until)
	switch {
	case s.says != did:
		return s.Call > to || s.says == didNot && c.at >= from
	case s.intent == runs && r.grants[d.ended[0]] == 1 && s.hasToken(d.ended[0]):
		return s.Call > to
	}
	return s.intent != frees && s.Call > to || c.at >= from && r.needed(l, s)
}

// mayLapse tells whether the next change deletes a key whose lease may have ended. It may be an expiry, which the
// change after it will show.
func (r *Reader) mayLapse(l *ledger, c *change) bool {
	if l.state.until == 0 || !c.deletes() {
		return false
	}
	from, _ := r.ours(l.server, l.state.until)
	return c.at >= from
}

func (c *change) deletes() bool {
	return slices.ContainsFunc(c.commands, func(args []string) bool { return understand(args).intent == frees })
}

// freeing lists the kinds of requests that may delete a key.
var freeing = []clue{{affirmed, frees, ""}, {affirmed, runs, ""}, {unheard, frees, ""}, {unheard, runs, ""}}

// needed tells whether a request is needed to explain a later deletion of the key, before the end of a lease, because
// there is no other one.
func (r *Reader) needed(l *ledger, s *sighting) bool {
	after, ends := l.state.clone(), 0
	for _, c := range l.changes { // except for the change that is being applied
		from := time.Duration(0)
		if after.until != 0 {
			from, _ = r.ours(l.server, after.until)
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
func (r *Reader) ours(n int, ms int64) (from, to time.Duration) {
	s := r.server(n)
	at := time.Duration(ms)*time.Millisecond - time.Duration(r.o.Epoch.UnixNano())
	return at - s.ahead - time.Millisecond, at - s.behind + time.Millisecond
}

// lease is the shortest lease that a change can have given: an argument of its request if that fits, else what was left
// of it when the effect was known. It begins between call and reply of the request, and before the effect was read; 0 =
// it does not end.
func (r *Reader) lease(l *ledger, c *change, until int64, s *sighting) time.Duration {
	if until == 0 {
		return 0
	}
	from, to := r.ours(l.server, until)
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
