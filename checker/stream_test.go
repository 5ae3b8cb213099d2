package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hammerlock/history"
)

// streamed gives the operations of a history to a stream, in the order of their returns.
func streamed(h *history.History) *Stream {
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return stamp{a.Return, 0}.compare(stamp{b.Return, 0}) })
	s := NewStream(&h.Header)
	safe := time.Duration(0)
	for i := range h.Ops {
		before := s.count
		s.Observe(&h.Ops[i])
		open := h.Ops[i].Return
		for k := i + 1; k < len(h.Ops); k++ {
			open = min(open, h.Ops[k].Call)
		}
		s.UpTo(open)
		for _, v := range s.found[min(before, int64(len(s.found))):] {
			if v.At < safe {
				panic("a violation within what was said to be safe")
			}
		}
		safe = s.SafeUpTo()
	}
	before := s.count
	s.finish()
	for _, v := range s.found[min(before, int64(len(s.found))):] {
		if v.At < safe {
			panic("a violation within what was said to be safe")
		}
	}
	return s
}

// finish ends the holds that are still open, at the deadlines that their holders were told.
func (s *Stream) finish() {
	for _, b := range s.holds {
		b.settled, b.to = true, min(b.to, b.lost, b.crashed)
	}
	clear(s.holds)
	clear(s.tokens)
	for _, l := range s.lines {
		if l != nil {
			s.judge(l)
		}
	}
}

func (s *Stream) of(checker string) (n int64) {
	for _, v := range s.found {
		if v.Checker == checker {
			n++
		}
	}
	return n
}

// TestStreamAgreesOnExclusion compares the stream with the sweep over the whole history, and with an oracle that tries
// every instant.
func TestStreamAgreesOnExclusion(t *testing.T) {
	bad := 0
	rapid.Check(t, func(r *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") }
		// among holds that begin together and are partly shared, the count depends on their order
		readers := draw(2)
		h := shared(tiny(draw), draw, readers)
		if slices.ContainsFunc(read(h), func(x told) bool {
			return x.crash != nil && x.extend != nil && x.extend.Call >= x.crash.Call
		}) {
			return // dead workers extend nothing
		}
		c := prepared(t, h)
		want := int64(0)
		sweep := newSweeper(c)
		for _, holds := range c.byKey {
			sweep.beliefs(holds, func(pair, bool) { want++ })
		}
		got := streamed(h).of(Exclusion.Name)
		if readers == 0 && got != want || (got > 0) != tooManyBelieve(0, read(h)) {
			r.Fatalf("the stream found %d, the sweep %d, the oracle %v", got, want, tooManyBelieve(0, read(h)))
		}
		if got > 0 {
			bad++
		}
	})
	if bad == 0 {
		t.Error("no history had a violation: nothing was compared")
	}
}

// race lets a few workers load and replace one counter at random moments; every store takes effect.
func race(r *rand.Rand, visits int) *history.History {
	type step struct {
		at    int
		hold  history.ID
		store bool
	}
	s := newScript()
	s.Claims.Expires = false
	var steps []step
	for w := range int32(visits) {
		call := r.IntN(6 * visits)
		id := s.acquire(w%7, 0, 0, 0)
		s.last().Call, s.last().Return, s.last().Until = time.Duration(10*call),
			time.Duration(10*call+1), history.Forever
		load := call + 1 + r.IntN(2)
		store := load + 1 + r.IntN(4)
		steps = append(steps, step{load, id, false}, step{store, id, true})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return a.at - b.at })
	var writer history.ID
	views := int64(0)
	seen := map[history.ID]history.Op{}
	for i, st := range steps {
		at := time.Duration(10*st.at) + time.Duration(i)
		if !st.store {
			op := s.on(st.hold, history.Load, 0, 0)
			op.Call, op.Return, op.Seen, op.Value = at, at, writer, views
			seen[st.hold] = *op
			continue
		}
		op := s.on(st.hold, history.Store, 0, 0)
		op.Call, op.Return, op.Seen, op.Value = at, at, seen[st.hold].Seen, seen[st.hold].Value+1
		writer, views = op.ID, op.Value
	}
	final := s.op(history.Final, -1, 0, 0)
	final.Call, final.Return = time.Duration(1000*visits), time.Duration(1000*visits)
	final.Seen, final.Value = writer, views
	return &s.History
}

// TestStreamAgreesOnLostUpdates: the stream finds two stores that replaced the same view if and only if the judge of
// the whole history finds a lost view.
func TestStreamAgreesOnLostUpdates(t *testing.T) {
	lost, whole := 0, 0
	all := many(2000)
	for seed := range uint64(all) {
		h := race(rand.New(rand.NewPCG(seed, 1)), 2+int(seed%12))
		s := streamed(h)
		v := judgeLostUpdates(prepared(t, h))
		if forks := s.of(lostUpdates.Name); (forks > 0) != (v.Violations > 0) || forks > v.Violations {
			t.Fatalf("seed %d: the stream found %d forks, the judge %d lost: %s", seed, forks, v.Violations, v.Summary)
		}
		if v.Violations > 0 {
			lost++
		} else {
			whole++
		}
	}
	if lost < all/20 || whole < all/20 {
		t.Errorf("%d histories lost something, %d did not: too few to compare", lost, whole)
	}
}

// TestStreamKeepsWhatIsLoaded: a worker may sleep between load and store for any time.
func TestStreamKeepsWhatIsLoaded(t *testing.T) {
	c := newChains()
	at := func(kind history.Kind, worker int32, seen, id uint64) *replaced {
		return c.observe(&history.Op{ID: history.ID(id), Kind: kind, Worker: worker, Seen: history.ID(seen),
			Outcome: history.OK})
	}
	at(history.Load, 1, 5, 0)
	at(history.Store, 2, 5, 6)
	for id := uint64(7); id < 3*mostParents; id++ {
		at(history.Load, 2, id-1, 0)
		at(history.Store, 2, id-1, id)
	}
	if len(c.places) > mostParents || len(c.ring) > mostParents {
		t.Errorf("%d page views are kept", len(c.places))
	}
	if first := at(history.Store, 1, 5, 1); first == nil || first.child != 6 || first.worker != 2 {
		t.Errorf("got %+v", first)
	}
}

// TestStreamIsBounded lets one holder keep its hold for ever: times for which holds were not kept are not called safe.
func TestStreamIsBounded(t *testing.T) {
	s := NewStream(&history.Header{Claims: history.Claims{Excludes: true}})
	for n := range 3 * mostBeliefs {
		id, at := history.ID(1<<40|n+1), time.Duration(10*n+10)
		s.Observe(&history.Op{ID: id, Kind: history.Acquire, Outcome: history.OK, Worker: int32(n), Call: at,
			Return: at + 1, Until: history.Forever})
		if n > 0 {
			s.Observe(&history.Op{Hold: id, Kind: history.Release, Outcome: history.OK, Worker: int32(n), Call: at + 2,
				Return: at + 3})
		}
	}
	if s.waiting > mostBeliefs || s.SafeUpTo() > 11 {
		t.Errorf("%d kept, safe up to %s", s.waiting, s.SafeUpTo())
	}
	s.finish()
	if n, _ := s.Violations(); n == 0 || s.SafeUpTo() > 10*(mostBeliefs+2) {
		t.Errorf("%d violations, safe up to %s", n, s.SafeUpTo())
	}
}

func BenchmarkStream(b *testing.B) {
	s := NewStream(&history.Header{Claims: history.Claims{Excludes: true}})
	n := uint64(1)
	var seen history.ID
	for b.Loop() {
		at, id := time.Duration(100*n), history.ID(n<<3)
		for i, kind := range []history.Kind{history.Acquire, history.Load, history.Store, history.Release} {
			op := history.Op{ID: id + history.ID(i), Hold: id, Kind: kind, Outcome: history.OK,
				Worker: int32(n % 32), Seen: seen,
				Token: n, Call: at + time.Duration(20*i), Return: at + time.Duration(20*i+10), Until: history.Forever}
			s.Observe(&op)
		}
		seen, n = id+2, n+1
	}
}

// TestAStreamLeavesServicesToTheEnd: a visit to a service does not replace a page view that it has loaded.
func TestAStreamLeavesServicesToTheEnd(t *testing.T) {
	h := history.Header{Workers: 2, Keys: 1, Service: true}
	s := NewStream(&h)
	for i := range 4 {
		at := time.Duration(i) * time.Millisecond
		s.Observe(&history.Op{ID: history.ID(i + 1), Worker: int32(i % 2), Kind: history.Store, Outcome: history.OK,
			Call: at, Return: at + 1, Value: 1})
	}
	if n, found := s.Violations(); n > 0 {
		t.Errorf("found %v", found)
	}
}
