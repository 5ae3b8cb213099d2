package explore

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"
)

// fingerprint is a hash of what each client and each server has seen. Two schedules with the same fingerprint differ
// only in two ways. Events that no client can tell apart have another order (they are the same Mazurkiewicz trace),
// or the sites have other names. So the same can follow from both. A site is identified by its history, and by the
// clients that have learned of this history.
type fingerprint struct {
	clients []uint64 // by client: hash of what it has learned and done, in order
	sites   []uint64 // by site: hash of what it has executed, in order; the last element is the counter
	marks   []uint64 // by site: hash of the fates of replies and of lost messages, in any order
}

var seed = maphash.MakeSeed()

// seenAs is what a client or server can see of a decision.
type seenAs struct {
	client, conn  int
	kind          kind
	act           act
	now           time.Duration
	before, there uint64
}

// sent notes what the senders of new requests and messages had seen.
func (f *fingerprint) sent(pending []*event) {
	for _, e := range pending {
		if e.kind == request && e.x.past == 0 {
			e.x.past = maphash.Comparable(seed, [2]uint64{f.clients[e.client], uint64(e.conn)})
		}
		if e.kind == reply && e.x.pushed && e.x.past == 0 {
			e.x.past = f.sites[e.site]
		}
	}
}

// choose adds a decision. The sender of a request learns nothing before the reply; until then only the server has
// seen the request.
func (f *fingerprint) choose(e *event, a act, now time.Duration) {
	what := seenAs{client: e.client, conn: e.conn, kind: e.kind, act: a, now: now}
	own := &f.clients[e.client]
	switch {
	case a == expires: // all wait
		for i := range f.sites {
			f.sites[i] = maphash.Comparable(seed, [2]uint64{f.sites[i], uint64(now)})
		}
	case a == hangs, a == forgets, a == leaps, a == dies: // no client has seen it yet
		f.sites[e.site] = maphash.Comparable(seed, seenAs{act: a, now: now, there: f.sites[e.site]})
	case a == pauses, a == crashes, a == cancelsCall:
		*own = maphash.Comparable(seed, seenAs{client: e.client, act: a, now: now, before: *own})
	case a == letGo && e.kind == request:
		what.before, what.there = e.x.past, f.sites[e.site]
		e.x.sent, e.x.past = e.x.past, maphash.Comparable(seed, what)
	case a == loses, a == breaks: // if a request has no effect, no client can tell whether it was executed
		if what.there = e.x.past; e.kind == reply && e.x.idle {
			what.kind, what.there = request, e.x.sent
		}
		f.heard(e, what, a == breaks)
	case e.kind == request, e.kind == reply:
		what.there = e.x.past
		f.heard(e, what, true)
	case e.kind == load, e.kind == store, e.kind == reload:
		there := &f.sites[len(f.sites)-1]
		what.before, what.there = *own, *there
		*own = maphash.Comparable(seed, what)
		*there = *own
	default:
		what.before = *own
		*own = maphash.Comparable(seed, what)
	}
}

// heard adds the fate of a message. Its client learns the fate only if told is true. Equal replies at the same
// instant are not distinguished.
func (f *fingerprint) heard(e *event, what seenAs, told bool) {
	f.marks[e.site] += maphash.Comparable(seed, what)
	if told {
		what.before = f.clients[e.client]
		f.clients[e.client] = maphash.Comparable(seed, what)
	}
}

// carriedOut adds a request to what its site has seen, if the request had an effect.
func (f *fingerprint) carriedOut(e *event) {
	x := e.x
	// Another goroutine may answer a blocking command, perhaps at this moment.
	if !blocking[strings.ToLower(x.words[0])] && x.answered {
		x.idle = x.idle || harmless(x.words[0], append(x.answer, "")[0])
	}
	if !x.idle {
		f.sites[e.site] = x.past
	}
}

// readers are the commands that change nothing. For other commands, inVain has the replies that show that nothing was
// changed.
var (
	readers = strings.Fields("exists get hexists hget hgetall hlen hmget lindex llen lrange mget " +
		"pttl scard sismember smembers strlen time ttl type zcard zcount zrange zrangebyscore zrank zscore")
	inVain = map[string]string{"set": "nil", "del": "0", "unlink": "0", "expire": "0", "pexpire": "0", "hdel": "0",
		"hsetnx": "0", "lrem": "0", "persist": "0", "publish": "0", "setnx": "0", "srem": "0", "zrem": "0",
		"zremrangebyscore": "0"}
)

// harmless tells whether a command has changed nothing on the server; answer is the beginning of its reply.
func harmless(command, answer string) bool {
	name := strings.ToLower(command)
	return slices.Contains(readers, name) || answer != "" && inVain[name] == answer
}

// key identifies the state before a decision: what was seen, which events wait, and which client acted last.
func (s *schedule) key() uint64 {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.keyOf(&s.state, s.current, func(*event) bool { return false })
}

// keyOf identifies a state by a fingerprint and the client that acted last. Events for which gone returns true are
// left out.
func (s *schedule) keyOf(f *fingerprint, current int, gone func(*event) bool) uint64 {
	h := maphash.Comparable(seed, [2]uint64{uint64(current) + 1, uint64(s.w.clock.Now())})
	for i, x := range f.clients {
		left := max(time.Until(s.paused[i]), 0)
		if s.crashed[i] {
			left = -1
		}
		h = maphash.Comparable(seed, [3]uint64{h, x, uint64(left)})
	}
	waiting := make([]uint64, len(f.sites)) // by site: the waiting events, as an unordered set
	for _, e := range s.w.pending {
		if gone(e) {
			continue
		}
		site, past := len(waiting)-1, uint64(0)
		if e.x != nil {
			site, past = e.site, e.x.past
		}
		left := max(time.Until(e.held), 0)
		waiting[site] += maphash.Comparable(seed,
			[5]uint64{uint64(e.client), uint64(e.conn), uint64(e.kind), uint64(left), past})
	}
	var sites uint64 // an unordered set, because sites have no names
	for i, x := range f.sites {
		hung := time.Duration(-1) // for the counter
		if i < len(s.hung) {
			hung = max(time.Until(s.hung[i]), 0)
		}
		sites += maphash.Comparable(seed, [4]uint64{x, f.marks[i], waiting[i], uint64(hung)})
	}
	return maphash.Comparable(seed, [2]uint64{h, sites})
}

// leads returns, for each option of a decision, the state after it and before any client reacts. A client's reaction
// depends only on what it has seen. So if two options lead to the same state, the same follows from both.
func (s *schedule) leads(options []option) (list []uint64) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, o := range options {
		list = append(list, s.leadsTo(o))
	}
	return list
}

func (s *schedule) leadsTo(o option) uint64 {
	e, current := o.e, o.e.client
	f := fingerprint{slices.Clone(s.state.clients), slices.Clone(s.state.sites), slices.Clone(s.state.marks)}
	if e.x != nil {
		past, sent := e.x.past, e.x.sent
		defer func() { e.x.past, e.x.sent = past, sent }()
	}
	f.choose(e, o.act, s.w.clock.Now())
	gone := func(*event) bool { return false } // the effect of a request is not known yet, so its event stays
	switch {
	case o.act == loses, o.act == breaks, o.act == refuses, o.act == letGo && e.kind != request:
		gone = func(x *event) bool { return x == e }
	case o.act == dies:
		gone = func(x *event) bool { return x.x != nil && x.site == e.site }
	case o.act == hangs:
		defer func(until time.Time) { s.hung[e.site] = until }(s.hung[e.site])
		s.hung[e.site] = time.Now().Add(s.hangsFor())
	case o.act == pauses, o.act == crashes, o.act == cancelsCall:
		current = s.current
	}
	way := s.keyOf(&f, current, gone)
	if o.act == pauses { // a pause may concern this event only
		way = maphash.Comparable(seed, [5]uint64{way, uint64(e.conn), uint64(e.kind), f.sites[e.site], f.marks[e.site]})
	}
	return way
}
