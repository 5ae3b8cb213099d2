package explore

import (
	"hash/maphash"
	"time"
)

// fingerprint sums up what has happened, by what each client and each server has seen of it. Two schedules with the same
// fingerprint differ only in the order of what nobody could tell apart (they are one Mazurkiewicz trace), or in the names of
// the sites, so that the same follows from both. No site has a name here: it is what was done to it, and who heard of that.
type fingerprint struct {
	clients []uint64 // what it has heard and done, in order
	sites   []uint64 // what was carried out, in order; the last one is the counter
	marks   []uint64 // by site: what became of the answers, and what was lost, in no order
}

var seed = maphash.MakeSeed()

func newFingerprint(o *Options) fingerprint {
	return fingerprint{make([]uint64, o.Clients), make([]uint64, o.Sites+1), make([]uint64, o.Sites+1)}
}

// seenAs is what of a decision can be told apart.
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

// choose adds a decision. Whoever sent a request hears nothing before the reply: until then only the server has seen it.
func (f *fingerprint) choose(e *event, a act, now time.Duration) {
	what := seenAs{client: e.client, conn: e.conn, kind: e.kind, act: a, now: now}
	own := &f.clients[e.client]
	switch {
	case a == expires: // all wait
		for i := range f.sites {
			f.sites[i] = maphash.Comparable(seed, [2]uint64{f.sites[i], uint64(now)})
		}
	case a == hangs, a == forgets, a == leaps, a == dies: // nobody has seen it yet
		f.sites[e.site] = maphash.Comparable(seed, seenAs{act: a, now: now, there: f.sites[e.site]})
	case a == pauses, a == crashes, a == cancelsCall:
		*own = maphash.Comparable(seed, seenAs{client: e.client, act: a, now: now, before: *own})
	case a == letGo && e.kind == request:
		what.before, what.there = e.x.past, f.sites[e.site]
		e.x.past = maphash.Comparable(seed, what)
		f.sites[e.site] = e.x.past
	case a == loses:
		what.there = e.x.past
		f.marks[e.site] += maphash.Comparable(seed, what)
	case e.kind == request, e.kind == reply: // the client hears of it
		what.before, what.there = *own, e.x.past
		*own = maphash.Comparable(seed, what)
		f.marks[e.site] += *own
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

// key names the state that a decision is made in: what was seen, what waits, and whose turn it is.
func (s *schedule) key() uint64 {
	h := maphash.Comparable(seed, [2]uint64{uint64(s.current) + 1, uint64(s.w.clock.Now())})
	for i, x := range s.state.clients {
		left := max(time.Until(s.paused[i]), 0)
		if s.crashed[i] {
			left = -1
		}
		h = maphash.Comparable(seed, [3]uint64{h, x, uint64(left)})
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	waiting := make([]uint64, len(s.state.sites)) // sets
	for _, e := range s.w.pending {
		site, past := len(waiting)-1, uint64(0)
		if e.x != nil {
			site, past = e.site, e.x.past
		}
		left := max(time.Until(e.held), 0)
		waiting[site] += maphash.Comparable(seed, [5]uint64{uint64(e.client), uint64(e.conn), uint64(e.kind), uint64(left), past})
	}
	var sites uint64 // a set: sites have no names
	for i, x := range s.state.sites {
		hung := time.Duration(-1) // of the counter
		if i < len(s.hung) {
			hung = max(time.Until(s.hung[i]), 0)
		}
		sites += maphash.Comparable(seed, [4]uint64{x, s.state.marks[i], waiting[i], uint64(hung)})
	}
	return maphash.Comparable(seed, [2]uint64{h, sites})
}
