package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// visit adds a whole visit that begins at the time `call`. It loads what the store `seen` wrote, and replaces it.
func (s *builder) visit(w int32, call int, seen history.ID, value int64) history.ID {
	at := func(n int) (d int) { return call + 2*n }
	hold := s.grant(w, dur(at(0)), dur(at(0)+1), 100)
	s.load(w, hold, dur(at(1)), seen, value)
	store := s.store(w, hold, dur(at(2)), seen, value+1)
	s.release(w, hold, dur(at(3)), dur(at(3)+1), history.OK)
	return store
}

// stoppedInStore lets a fault stop the process of a visit, before or after the call of its store. The lease ends
// during the stop.
func (s *builder) stoppedInStore(call time.Duration) {
	s.h.Faults = []history.Injection{{Effect: processStops}}
	s.h.Bounds.Gap = time.Millisecond
	s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 4, Return: 24})
	s.add(history.Op{Kind: history.Gap, Worker: -1, Key: -1, Process: 1, Call: 4, Return: 24})
	hold := s.grant(1, 0, 1, 10)
	s.h.Ops[len(s.h.Ops)-1].Process = 1
	s.load(1, hold, 2, 0, 0)
	s.h.Ops[len(s.h.Ops)-1].Process = 1
	s.visit(2, 12, 0, 0)
	late := s.add(history.Op{Kind: history.Store, Outcome: history.OK, Hold: hold, Value: 1, Worker: 1, Process: 1,
		Call: call, Return: 25})
	s.final(100, late, 1)
}

// lateStore is a store that was called within its lease and took effect 20 ms after the lease had ended. Its process
// was paused for the time `still`, without a fault.
func (s *builder) lateStore(still time.Duration) {
	s.h.Bounds.Gap = time.Millisecond
	s.add(history.Op{Kind: history.Gap, Worker: -1, Key: -1, Call: 6, Return: 6 + still})
	hold := s.grant(1, 0, 1, 10)
	s.load(1, hold, 2, 0, 0)
	s.visit(2, 12, 0, 0)
	late := s.add(history.Op{Kind: history.Store, Outcome: history.OK, Hold: hold, Value: 1, Worker: 1,
		Call: 4, Return: 30})
	s.final(100, late, 1)
}

var lostUpdateCases = map[string]struct {
	write       func(*builder)
	status      Status
	cause, word string
}{
	"in turn": {func(s *builder) {
		a := s.visit(1, 0, 0, 0)
		b := s.visit(2, 20, a, 1)
		s.final(100, b, 2)
	}, Pass, "", "2 page views"},
	"nothing stored": {func(s *builder) { s.final(0, 0, 0) }, Inconclusive, "", "no page view"},
	"no final count": {func(s *builder) { s.visit(1, 0, 0, 0) }, Inconclusive, "", "not read"},
	"a stranger's store": {func(s *builder) {
		s.visit(1, 0, 0, 0)
		s.final(100, 12345<<40|1, 7)
	}, Inconclusive, "", "does not hold"},
	"a stranger's store, as was allowed": {func(s *builder) {
		s.h.Partial, s.h.Allowed = "agent b was lost", true
		s.visit(1, 0, 0, 0)
		s.visit(2, 20, 12345<<40|1, 7)
	}, Pass, "", "without what is missing: 2 reads of its stores, 1 pages not read at the end"},
	"at once": {func(s *builder) {
		s.visit(1, 0, 0, 0)
		b := s.visit(2, 1, 0, 0)
		s.final(100, b, 1)
	}, Fail, "exclusion", "1 of 2"},
	"a slow holder": {func(s *builder) {
		hold := s.grant(1, 0, 1, 10)
		s.load(1, hold, 2, 0, 0)
		b := s.visit(2, 20, 0, 0)
		slow := s.store(1, hold, 40, 0, 1)
		_ = b
		s.final(100, slow, 1)
	}, Fail, "overrun", "1 of 2"},
	"a leader's second store of three, beside another who saw an older count": {func(s *builder) {
		hold := s.grant(1, 0, 1, 1000)
		first := s.store(1, hold, 4, 0, 1)
		s.load(1, hold, 20, first, 1)
		second := s.store(1, hold, 24, first, 2)
		s.load(1, hold, 40, second, 2)
		third := s.store(1, hold, 44, second, 3)
		s.visit(2, 30, first, 1)
		s.final(100, third, 3)
	}, Fail, "stale-read", "1 of 4"},
	"a leader's store that is lost, and its next one": {func(s *builder) {
		hold := s.grant(1, 0, 1, 1000)
		s.load(1, hold, 2, 0, 0)
		s.store(1, hold, 12, 0, 1)
		other := s.visit(2, 4, 0, 0)
		s.load(1, hold, 30, other, 1)
		s.final(100, s.store(1, hold, 34, other, 2), 2)
	}, Fail, "exclusion", "1 of 3"},
	"a store that comes late": {func(s *builder) {
		hold := s.grant(1, 0, 1, 10)
		s.load(1, hold, 2, 0, 0)
		late := s.add(history.Op{Kind: history.Store, Hold: hold, Value: 1, Worker: 1, Call: 4, Return: 9})
		s.visit(2, 20, 0, 0)
		s.final(100, late, 1)
	}, Fail, "zombie-write", "1 of 1"},
	"a store that comes late, for its process was paused most of the time": {func(s *builder) {
		s.lateStore(15)
	}, Inconclusive, "", "excused: "},
	"a store that comes late, and its process was paused for a moment": {func(s *builder) {
		s.lateStore(3)
	}, Fail, "zombie-write", "1 of 2"},
	"a store that was on its way when a fault stopped its process": {func(s *builder) {
		s.stoppedInStore(4)
	}, Inconclusive, "", "excused: "},
	"a store that was called too late by a process that a fault stopped": {func(s *builder) {
		s.stoppedInStore(24)
	}, Fail, "overrun", "1 of 2"},
	"an older count that was read before the hold, or elsewhere": {func(s *builder) {
		s.store(1, s.grant(1, 0, 1, 10), 4, 0, 1)
		s.final(100, s.store(2, s.grant(2, 20, 21, 1000), 24, 0, 1), 1)
	}, Fail, "early-read", "1 of 2"},
	"an older count that was loaded before the hold": {func(s *builder) {
		s.store(1, s.grant(1, 0, 1, 10), 4, 0, 1)
		hold := s.grant(2, 20, 21, 1000)
		s.load(2, hold, 15, 0, 0)
		s.final(100, s.store(2, hold, 24, 0, 1), 1)
	}, Fail, "early-read", "1 of 2"},
	"an older count is loaded": {func(s *builder) {
		a := s.visit(1, 0, 0, 0)
		s.visit(2, 20, a, 1)
		c := s.visit(3, 40, a, 1)
		s.final(100, c, 2)
	}, Fail, "stale-read", "1 of 3"},
	"the counter went back with its topology": {func(s *builder) {
		s.h.Counter = history.CounterOnTopology
		s.visit(1, 0, 0, 0)
		b := s.visit(2, 20, 0, 0)
		s.final(100, b, 1)
	}, Fail, "store-loss", "1 of 2"},
	"the end is not the end": {func(s *builder) {
		a := s.visit(1, 0, 0, 0)
		s.visit(2, 20, a, 1)
		s.final(100, a, 1)
	}, Fail, "overwritten", "1 of 2"},
	"an increment without an answer that nobody saw": {func(s *builder) {
		a := s.visit(1, 0, 0, 0)
		s.add(history.Op{Kind: history.Store, Worker: 2, Call: 20, Return: history.Forever})
		b := s.visit(3, 40, a, 1)
		s.final(100, b, 2)
	}, Pass, "", "2 page views"},
	"an increment without an answer that took effect": {func(s *builder) {
		s.visit(1, 0, 0, 0)
		u := s.add(history.Op{Kind: history.Store, Worker: 2, Call: 20, Return: history.Forever})
		b := s.visit(3, 40, u, 2)
		s.final(100, b, 3)
	}, Inconclusive, "", "does not hold"},
	"counted twice": {func(s *builder) {
		a := s.visit(1, 0, 0, 0)
		s.final(100, a, 2)
	}, Fail, "duplicate", "0 of 1"},
	"a store that certainly failed is seen": {func(s *builder) {
		hold := s.grant(1, 0, 1, 10)
		f := s.add(history.Op{Kind: history.Store, Hold: hold, Value: 1, Worker: 1, Call: 4, Return: 9,
			Outcome: history.Failed})
		b := s.visit(2, 20, f, 1)
		s.final(100, b, 2)
	}, Fail, "phantom", "0 of 1"},
}

func TestLostUpdates(t *testing.T) {
	for name, tt := range lostUpdateCases {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			tt.write(s)
			expect(t, judgeLostUpdates(s.prepared()), tt.status, tt.cause, tt.word)
		})
	}
}

// TestLostUpdateShowsTheTwoVisits: the evidence has exactly the loads and stores of the two visits.
func TestLostUpdateShowsTheTwoVisits(t *testing.T) {
	s := newBuilder()
	a := s.visit(1, 0, 0, 0)
	b := s.visit(2, 20, a, 1)
	c := s.visit(3, 21, a, 1)
	d := s.visit(4, 60, c, 2)
	s.final(100, d, 3)
	v := judgeLostUpdates(s.prepared())
	stores, loads := []history.ID{}, 0
	for _, op := range v.Evidence {
		if op.Kind == history.Store {
			stores = append(stores, op.ID)
		} else if op.Kind == history.Load && op.Seen == a {
			loads++
		}
	}
	slices.Sort(stores)
	if want := []history.ID{b, c}; !slices.Equal(stores, want) || loads != 2 || len(v.Evidence) != 4 {
		t.Errorf("evidence %v", v.Evidence)
	}
	if tally := (Tally{Acknowledged: 4, Final: 3}); v.Violations != tally.Lost() {
		t.Errorf("%d lost, the sums say %d", v.Violations, tally.Lost())
	}
}

// register is the true state of a counter.
type register struct {
	id    history.ID
	views int64
}

// drawUpdates lets visits use a register, mostly in turn, with random errors.
func drawUpdates(r *rand.Rand) *builder {
	s := newBuilder()
	var reg register
	var past []register
	type open struct {
		w    int32
		seen register
	}
	var visits []open
	var late []register
	wild := r.IntN(3) // 0: the visits take turns
	now := 0
	write := func(v register) { past = append(past, reg); reg = v }
	visitors := int32(1 + r.IntN(5))
	for next := int32(0); next < visitors || len(visits) > 0; now += 3 {
		if wild == 2 && len(past) > 0 && r.IntN(12) == 0 {
			reg = past[r.IntN(len(past))] // the counter forgets
		}
		if len(late) > 0 && r.IntN(2) == 0 {
			write(late[0])
			late = late[1:]
		}
		if next < visitors && (len(visits) == 0 || wild > 0 && r.IntN(3) == 0) {
			s.load(next, 0, dur(now), reg.id, reg.views)
			visits = append(visits, open{next, reg})
			next++
			continue
		}
		if len(visits) == 0 {
			continue
		}
		i := r.IntN(len(visits))
		v := visits[i]
		visits = slices.Delete(visits, i, i+1)
		op := history.Op{Kind: history.Store, Worker: v.w, Seen: v.seen.id, Value: v.seen.views + 1, Call: dur(now),
			Return: dur(now + 1)}
		takes := r.IntN(8)
		if takes > 1 {
			op.Outcome = history.OK
		} else if takes == 1 && r.IntN(2) == 0 {
			op.Outcome = history.Failed
		}
		new := register{s.add(op), op.Value}
		switch {
		case op.Outcome == history.OK:
			write(new)
		case op.Outcome == history.Unknown && r.IntN(2) == 0:
			late = append(late, new)
		case op.Outcome == history.Unknown && r.IntN(2) == 0, op.Outcome == history.Failed && r.IntN(10) == 0:
			write(new)
		}
	}
	if r.IntN(3) == 0 {
		s.load(visitors, 0, dur(now), reg.id, reg.views)
	}
	if r.IntN(8) > 0 {
		s.final(dur(now+3), reg.id, reg.views)
	}
	return s
}

// orders tries every order of the acknowledged stores, with any of the stores that may have taken effect. It returns
// true if some order is possible: each store replaced the one before, the last one made the final count, and no load
// saw too old a store.
func orders(c *Case) bool {
	var stores, loads []*history.Op
	var final *history.Op
	acknowledged := 0
	for i := range c.Ops {
		switch op := &c.Ops[i]; {
		case op.Kind == history.Store && op.Outcome != history.Failed:
			stores = append(stores, op)
			if op.Outcome == history.OK {
				acknowledged++
			}
		case op.Kind == history.Load:
			loads = append(loads, op)
		case op.Kind == history.Final:
			final = op
		}
	}
	var try func(chain []*history.Op, included int) bool
	try = func(chain []*history.Op, included int) bool {
		if included == acknowledged && readable(chain, loads, stores, final) {
			return true
		}
		last := register{}
		if len(chain) > 0 {
			last = register{chain[len(chain)-1].ID, chain[len(chain)-1].Value}
		}
		for _, s := range stores {
			if s.Seen == last.id && s.Value == last.views+1 && !slices.Contains(chain, s) {
				n := included
				if s.Outcome == history.OK {
					n++
				}
				if try(append(slices.Clone(chain), s), n) {
					return true
				}
			}
		}
		return false
	}
	return try(nil, 0)
}

func readable(chain, loads, stores []*history.Op, final *history.Op) bool {
	place := map[history.ID]int{0: 0}
	for i, s := range chain {
		place[s.ID] = i + 1
	}
	if final != nil && place[final.Seen] != len(chain) {
		return false
	}
	for _, l := range append(slices.Clone(loads), stores...) {
		if l.Kind == history.Store && l.Outcome == history.Unknown {
			if _, in := place[l.ID]; !in {
				if _, saw := place[l.Seen]; !saw {
					return false // its load saw a state that never existed
				}
				continue
			}
		}
		seen, in := place[l.Seen]
		if !in {
			return false
		}
		for _, s := range chain {
			if l.Kind == history.Load && s.Outcome == history.OK && s.Return < l.Call && place[s.ID] > seen {
				return false
			}
		}
	}
	return true
}

func TestLostUpdatesAgainstEveryOrder(t *testing.T) {
	p := property{
		histories: 120_000, draw: drawUpdates,
		check: func(c *Case) string {
			if v := judgeLostUpdates(c); v.Status == Fail && len(v.Evidence) == 0 {
				return "unproven"
			} else if v.Status == Fail && v.Misses["unacknowledged page views lost"] == 0 || len(v.Misses) > 0 {
				return "wrong"
			}
			return "right"
		},
		oracle: func(c *Case) string {
			for _, op := range c.Ops { // a store that certainly failed is in no order
				if seen := c.op(op.Seen); seen != nil && seen.Outcome == history.Failed {
					return "wrong"
				}
			}
			if orders(c) {
				return "right"
			}
			return "wrong"
		},
	}
	p.run(t)
}

// TestLostUpdatesCountsWhatTheSumsCount compares the number of lost page views with the sums, where both are exact.
func TestLostUpdatesCountsWhatTheSumsCount(t *testing.T) {
	compared := 0
	histories := many(20_000)
	for seed := range histories {
		c := drawUpdates(rand.New(rand.NewPCG(uint64(seed), 2))).prepared()
		tally, exact := Tally{}, false
		for _, op := range c.Ops {
			switch {
			case op.Kind == history.Store && op.Outcome == history.OK:
				tally.Acknowledged++
			case op.Kind == history.Store:
				tally.Unknown++
			case op.Kind == history.Final:
				tally.Final, exact = op.Value, true
			}
		}
		v := judgeLostUpdates(c)
		if !exact || tally.Unknown > 0 || v.Causes["stale-read"] > 0 {
			continue
		}
		compared++
		if v.Violations != tally.Lost() {
			t.Fatalf("seed %d: %d lost, the sums say %d\n%s", seed, v.Violations, tally.Lost(), show(c))
		}
	}
	if compared < histories/20 {
		t.Errorf("only %d histories could be compared", compared)
	}
}

func dur(n int) time.Duration { return time.Duration(n) }
