package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

var fairnessCases = map[string]struct {
	write       func(*builder)
	ordered     bool
	status      Status
	cause, word string
}{
	"nobody": {func(*builder) {}, true, Inconclusive, "", "no worker waited"},
	"nobody was refused": {func(s *builder) {
		s.grant(1, 0, 1, 100)
		s.done(1, 0, 5)
	}, true, Inconclusive, "", "nothing shows an order"},
	"in order": {func(s *builder) {
		s.refuse(1, 0, 1)
		s.refuse(2, 2, 3)
		s.grant(1, 10, 11, 100)
		s.grant(2, 20, 21, 100)
		s.done(1, 0, 30)
		s.done(2, 2, 30)
	}, true, Pass, "", "at most 0 earlier"},
	"out of order":                          {overtaken, true, Fail, "order", "1 grants out of order"},
	"out of order, and nothing was claimed": {overtaken, false, Pass, "", "at most 1 earlier waiters"},
	"nobody knows who came first": {func(s *builder) {
		s.refuse(1, 0, 5)
		s.refuse(2, 2, 3)
		s.grant(2, 10, 11, 100)
		s.grant(1, 20, 21, 100)
		s.done(2, 2, 30)
		s.done(1, 0, 30)
	}, true, Inconclusive, "", "nothing shows an order"},
	"who came first may have had it first": {func(s *builder) {
		s.refuse(1, 0, 1)
		s.grant(1, 5, 40, 100)
		s.grant(2, 10, 11, 100)
		s.done(2, 2, 50)
		s.done(1, 0, 50)
	}, true, Pass, "", ""},
	"who came first may not have been heard of for a lease": {func(s *builder) {
		slow(s, 23)
	}, true, Inconclusive, "", "nothing shows an order"},
	"who came first was slow, and heard of in time": {func(s *builder) {
		slow(s, 21)
	}, true, Fail, "order", "1 grants out of order"},
	"who came first was refused in the first part of a call": {func(s *builder) {
		s.refuse(1, 0, 1)
		s.refuse(1, 1, 4)
		s.grant(2, 2, 5, 100)
		s.grant(1, 20, 21, 100)
		s.done(2, 2, 30)
		s.done(1, 0, 30)
	}, true, Inconclusive, "", "nothing shows an order"},
	"who was forgotten in a fault is in line again when it is refused once more": {func(s *builder) {
		comesBack(s, 45)
	}, true, Fail, "order", "1 grants out of order"},
	"who was forgotten in a fault may be behind those who came meanwhile": {func(s *builder) {
		comesBack(s, 39)
	}, true, Pass, "", ""},
	"out of order around a fault": {func(s *builder) {
		overtaken(s)
		s.h.Faults = make([]history.Injection, 1)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 5, Return: 6})
	}, true, Pass, "", ""},
	"out of order, and a fault that may have come before by a worker's clock": {func(s *builder) {
		overtaken(s)
		s.h.Bounds.Slack, s.h.Processes = dur(2*int(s.tick)), 2
		s.refuse(3, 25, 26)
		s.h.Ops[len(s.h.Ops)-1].Process = 1
		s.h.Faults = make([]history.Injection, 1)
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 12, Return: 13})
	}, true, Pass, "", ""},
}

func TestFairness(t *testing.T) {
	for name, tt := range fairnessCases {
		t.Run(name, func(t *testing.T) {
			s := newBuilder()
			s.h.Claims.Ordered = tt.ordered
			tt.write(s)
			expect(t, judgeFairness(s.prepared()), tt.status, tt.cause, tt.word)
		})
	}
}

func overtaken(s *builder) {
	s.refuse(1, 0, 1)
	s.grant(2, 10, 11, 100)
	s.grant(1, 20, 21, 100)
	s.done(2, 10, 30)
	s.done(1, 0, 30)
}

// comesBack has a waiter whose process is stopped. It asks again, and a later waiter passes it over.
func comesBack(s *builder, later int) {
	s.h.Claims.Expires = true
	refused := history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: 1, TTL: dur(24)}
	for _, at := range []int{0, 20, 40, 60} {
		refused.Call, refused.Return = dur(at), dur(at+1)
		s.add(refused)
	}
	s.h.Faults = []history.Injection{{Effect: history.Effect{Hits: []history.Party{history.Clients}}, To: dur(6)}}
	s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: dur(5), Return: dur(5)})
	s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: dur(6), Return: dur(6)})
	s.grant(2, dur(later), dur(46), dur(24))
	s.done(2, dur(later), dur(50))
	s.done(1, 0, dur(70))
}

// slow has a waiter that tries at 0 and at 18 ticks, with leases of 22 ticks. In between, a later waiter is granted
// the lock. The argument later is the return of the second try.
func slow(s *builder, later time.Duration) {
	s.h.Claims.Expires = true
	first := history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: 1, Call: 0,
		Return: 1, TTL: 22}
	s.add(first)
	s.grant(2, 3, 4, 22)
	first.Call, first.Return = 18, later
	s.add(first)
	s.done(2, 3, 5)
	s.done(1, 0, 30)
}

// drawWaits lets a few workers try, be refused, give up and be granted, in any order.
func drawWaits(r *rand.Rand) *builder {
	s := newBuilder()
	s.h.Claims.Ordered, s.h.Claims.Expires = true, true
	s.h.Bounds.Slack, s.h.Processes = dur(r.IntN(3)*int(s.tick)), 1+r.IntN(2)
	for w := range int32(2 + r.IntN(4)) {
		now := r.IntN(20)
		for range 1 + r.IntN(3) {
			key, begin := int32(r.IntN(2)), now
			for end := false; !end; {
				call := now
				now += 1 + r.IntN(8)
				op := history.Op{Kind: history.Acquire, Worker: w, Key: key, Call: dur(call),
					Return: dur(now), TTL: dur(24),
					Outcome: history.Failed, Reason: history.Busy}
				switch r.IntN(8) {
				case 0, 1, 2:
					op.Outcome, op.Reason, end = history.OK, history.None, true
				case 3:
					op.Outcome, op.Reason = history.Unknown, history.Timeout
				case 4:
					end = true
				}
				s.add(op)
				now += r.IntN(12)
				if r.IntN(12) == 0 {
					now += 24
				}
			}
			s.add(history.Op{Kind: history.End, Worker: w, Key: key, Call: dur(begin), Return: dur(now)})
			now++
		}
	}
	return s
}

// tries are the Acquires of a visit, as the oracle reads them.
type tries struct {
	ops     []*history.Op
	stop    time.Duration
	granted bool
}

func readTries(c *Case) (all []tries) {
	for w := range int32(c.workers) {
		var v tries
		for i := range c.Ops {
			op := &c.Ops[i]
			if op.Worker != w || len(v.ops) == 0 && op.Kind == history.End {
				continue
			}
			if op.Kind == history.Acquire {
				v.ops = append(v.ops, op)
				v.granted = op.Outcome == history.OK
			}
			if v.stop = op.Return; v.granted || op.Kind == history.End {
				all = append(all, v)
				v = tries{}
			}
		}
	}
	return all
}

// queued returns the time since which a visit has been refused without interruption; Forever if it is not.
// Disturbances interrupt it.
func (v *tries) queued(c *Case) time.Duration {
	at := history.Forever
	for i, op := range v.ops {
		if i > 0 && op.Return-v.ops[i-1].Call > c.rules.Least(op.TTL) {
			at = history.Forever
		}
		part := i+1 < len(v.ops) && v.ops[i+1].Call <= op.Return+1 // the next try is part of the same call
		known := op.Return
		if op.Outcome == history.OK {
			known = op.Call
		}
		for _, d := range c.displaced {
			if at != history.Forever && at <= d.to && d.from <= known {
				at = history.Forever
			}
		}
		if op.Outcome == history.Failed && !part {
			at = min(at, op.Return)
		} else if op.Outcome == history.Unknown {
			at = history.Forever
		}
	}
	return at
}

// stood returns the earliest time at which a visit may have had a place in the queue. It is the call of its first try,
// or of an earlier try without an answer, which may take effect at any time.
func (v *tries) stood(c *Case) time.Duration {
	first := v.ops[0].Call
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind == history.Acquire && op.Worker == v.ops[0].Worker && op.Key == v.ops[0].Key &&
			op.Return <= v.stop && op.Outcome == history.Unknown {
			first = min(first, op.Call)
		}
	}
	return first
}

// everyPairOfVisits counts, by the definitions, the waiters that were passed over and the inversions.
func everyPairOfVisits(c *Case) string {
	visits := readTries(c)
	inverted, most, sum := 0, 0, 0
	for j := range visits {
		y := &visits[j]
		if !y.granted {
			continue
		}
		wrong, over := false, 0
		for i := range visits {
			x := &visits[i]
			if i == j || x.ops[0].Key != y.ops[0].Key {
				continue
			}
			if x.ops[0].Call < y.ops[0].Call && x.stop > y.stop {
				over++
			}
			slack := c.Bounds.Slack
			if x.ops[0].Process == y.ops[0].Process {
				slack = 0
			}
			passed := func(q, last time.Duration) bool {
				return q != history.Forever && q+slack < y.stood(c) && y.stop+slack < last
			}
			wrong = wrong || passed(x.queued(c), x.ops[len(x.ops)-1].Call)
			for n, op := range x.ops { // its place before it had an error, or did not ask for a lease
				before := tries{ops: x.ops[:n]}
				if n == 0 || op.Call <= x.ops[n-1].Return+1 {
					continue
				}
				q, last := before.queued(c), op.Call
				if op.Return-x.ops[n-1].Call > c.rules.Least(op.TTL) {
					last = x.ops[n-1].Call
				} else if op.Outcome != history.Unknown {
					continue
				}
				wrong = wrong || passed(q, last) && !c.displaced.meets(q, y.stop)
			}
		}
		if wrong {
			inverted++
		}
		most, sum = max(most, over), sum+over
	}
	return fmt.Sprintf("%v %d %d %d", inverted > 0, inverted, most, sum)
}

// drawDisturbed draws waits while processes are stopped.
func drawDisturbed(r *rand.Rand) *builder {
	s := drawWaits(r)
	for n := range int64(1 + r.IntN(2)) {
		from := r.IntN(120)
		s.h.Faults = append(s.h.Faults, history.Injection{
			Effect: history.Effect{Hits: []history.Party{history.Clients}}, To: dur(from + 1),
		})
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: dur(from), Return: dur(from), Value: n})
		s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: dur(from + 1), Return: dur(from + 1), Value: n})
	}
	return s
}

// TestWhoComesBackAgainstEveryPairOfVisits compares the inversions that no disturbance excuses.
func TestWhoComesBackAgainstEveryPairOfVisits(t *testing.T) {
	p := property{
		histories: 120_000, draw: drawDisturbed,
		oracle: func(c *Case) string {
			f := strings.Fields(everyPairOfVisits(c))
			return f[0] + " " + f[1]
		},
		check: func(c *Case) string {
			b := c.bypasses()
			b.inverted(func(w *wait) time.Duration {
				return w.again
			}, make([]bool, len(b.waits)), make([]bool, len(b.waits)))
			return fmt.Sprintf("%v %d", b.wrong > 0, b.wrong)
		},
	}
	p.run(t)
}

func TestFairnessAgainstEveryPairOfVisits(t *testing.T) {
	p := property{
		histories: 120_000, oracle: everyPairOfVisits,
		draw: func(r *rand.Rand) *builder {
			s := drawWaits(r)
			for i := range s.h.Ops { // an ordered clock gives no stamp twice
				s.h.Ops[i].Call += time.Duration(s.h.Ops[i].Worker)
				s.h.Ops[i].Return += time.Duration(s.h.Ops[i].Worker)
				s.h.Ops[i].Process = int16(int(s.h.Ops[i].Worker) % s.h.Processes)
			}
			return s
		},
		check: func(c *Case) string {
			v, overs := weighFairness(c)
			most, sum := int64(0), int64(0)
			for n, times := range overs {
				most, sum = int64(n), sum+int64(n)*times
			}
			return fmt.Sprintf("%v %d %d %d", v.Status == Fail, v.Violations, most, sum)
		},
	}
	p.run(t)
}

// TestReadersAreLetInTogether: a reader asks later than another waiter and is granted the lock first. If the other
// waiter is a reader, it is passed over only if it is refused again. If it is a writer, it is always passed over.
func TestReadersAreLetInTogether(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		writer, again bool // the first waiter is a writer; it is refused again
		want          Status
	}{
		"let in together":     {false, false, Pass},
		"refused once more":   {false, true, Fail},
		"a writer":            {true, false, Fail},
		"a writer, and again": {true, true, Fail},
	} {
		s, permits := newScript(), uint16(1)
		s.Claims.Readers, s.Claims.Ordered = true, true
		if tt.writer {
			permits = 0
		}
		h := s.acquire(0, 0, 1, 300)
		s.busy(1, 5, 6).Permits = permits
		s.busy(2, 10, 11).Permits = 1
		s.release(h, 20, 21)
		s.op(history.End, 0, 0, 21)
		later := s.acquire(2, 25, 26, 300)
		s.last().Permits = 1
		s.release(later, 26, 27)
		s.op(history.End, 2, 10, 27)
		if tt.again {
			s.busy(1, 28, 29).Permits = permits
		}
		first := s.acquire(1, 30, 31, 300)
		s.last().Permits = permits
		s.release(first, 40, 41)
		s.op(history.End, 1, 5, 41)
		if v := fairness.Check(s.prepare(t)); v.Status != tt.want {
			t.Errorf("%s: got %s: %s, want %s", name, v.Status, v.Summary, tt.want)
		}
	}
}

// TestNoOrderWithoutEndsOfVisits: without them, nothing says which tries are one wait.
func TestNoOrderWithoutEndsOfVisits(t *testing.T) {
	s := newBuilder()
	s.h.Claims = history.Claims{Excludes: true, Ordered: true}
	h := s.grant(0, 0, 1, 0)
	s.refuse(1, 10, 11)
	s.refuse(2, 20, 21)
	s.release(0, h, 50, 51, history.OK)
	s.grant(2, 60, 61, 0)
	s.refuse(1, 65, 66)
	expect(t, judgeFairness(s.prepared()), Inconclusive, "", "no ends of visits")
}
