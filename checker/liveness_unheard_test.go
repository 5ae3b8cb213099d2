package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// newcomers lets one worker come again and again. Each time it is granted the lock immediately, and soon gives it
// back. Another worker waits from the first hold on, and tries again only after the visits with the given numbers.
func newcomers(s *builder, visits int, tries ...int) {
	s.h.Claims.Wakes, s.h.Claims.Excludes, s.h.Bounds.Gap = true, true, time.Millisecond
	for i := range visits {
		at := dur(4 * i)
		h := s.grant(1, at, at+1, 4)
		if i == 0 {
			s.refuse(2, at+1, at+2)
		}
		s.release(1, h, at+2, at+3, history.OK)
		s.done(1, at, at+3)
		if slices.Contains(tries, i) {
			s.refuse(2, at+3, at+4)
		}
	}
	s.done(2, 1, dur(4*visits))
}

// wakesItself lets a third worker wait in place of the second, and try one second after each release.
func (s *builder) wakesItself(visits int, by history.Wake) {
	for i := range visits {
		s.refuse(3, dur(4*i), dur(4*i+1))
		s.h.Ops[len(s.h.Ops)-1].Woken = by
	}
	s.done(3, 1, dur(4*visits))
	// the second worker is removed
	s.h.Ops = slices.DeleteFunc(s.h.Ops, func(op history.Op) bool { return op.Worker == 2 })
}

// givesUp lets a worker be refused a page and give up.
func (s *builder) givesUp(w, page int32) {
	s.add(history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: w, Key: page,
		Call: 1, Return: 2})
	s.add(history.Op{Kind: history.End, Outcome: history.Failed, Reason: history.Impatient, Worker: w, Key: page,
		Call: 1, Return: 3})
}

// unheardReleases are histories; the status says whether their lock is blamed.
var unheardReleases = map[string]struct {
	write  func(*builder)
	status Status
}{
	"nobody who waits is woken":   {func(s *builder) { newcomers(s, 7) }, Fail},
	"too few to say":              {func(s *builder) { newcomers(s, 3) }, Pass},
	"who waits asks now and then": {func(s *builder) { newcomers(s, 9, 2, 5) }, Pass},
	"others gave up, whom the messages may have been for": {func(s *builder) {
		newcomers(s, 7)
		s.givesUp(3, 0)
		s.givesUp(4, 0)
	}, Pass},
	"others gave up, of another page": {func(s *builder) {
		newcomers(s, 7)
		s.givesUp(3, 1)
		s.givesUp(4, 1)
	}, Fail},
	"more messages than others gave up": {func(s *builder) {
		newcomers(s, 9)
		s.givesUp(3, 0)
	}, Fail},
	"a lock that does not say that it wakes": {func(s *builder) {
		newcomers(s, 9)
		s.h.Claims.Wakes = false
	}, Pass},
	"links were cut": {func(s *builder) {
		newcomers(s, 9)
		s.h.Faults = []history.Injection{{Effect: history.Effect{Hits: []history.Party{history.Links}}}}
		s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: 0, Return: 1})
		s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: 20, Return: 21})
	}, Pass},
	"a listener is dead, and waiters wake by themselves": {func(s *builder) {
		newcomers(s, 30)
		s.wakesItself(30, history.LeaseEnd)
	}, Fail},
	"waiters are woken by messages, and the machine is slow": {func(s *builder) {
		newcomers(s, 30)
		s.wakesItself(30, history.Signal)
	}, Pass},
	"each time one of two is woken": {func(s *builder) {
		newcomers(s, 9)
		s.refuse(3, 1, 2)
		for i := range 9 {
			s.refuse(3, dur(4*i+3), dur(4*i+4))
		}
		s.done(3, 1, 36)
	}, Pass},
}

func TestUnheardReleases(t *testing.T) {
	t.Parallel()
	for name, c := range unheardReleases {
		t.Run(name, func(t *testing.T) {
			s := &builder{numbers: map[int32]uint64{}, tick: time.Second}
			c.write(s)
			v := judgeLiveness(s.prepared())
			if failed := v.Status == Fail; failed != (c.status == Fail) || failed &&
				(v.Cause != history.LostWakeup || len(v.Evidence) != 3) {
				t.Errorf("got %s %s: %s", v.Status, v.Cause, v.Summary)
			}
		})
	}
}

// TestUnheardReleasesAgainstEachOne compares with an oracle that looks at each release and at each waiter.
func TestUnheardReleasesAgainstEachOne(t *testing.T) {
	blamed := func(l *livenessCheck) string {
		return fmt.Sprint(l.counts[history.LostWakeup])
	}
	p := property{
		histories: 20_000,
		draw: func(r *rand.Rand) *builder {
			s := newBuilder()
			s.tick = time.Second
			newcomers(s, 4+r.IntN(12)+20*r.IntN(2), r.IntN(20), r.IntN(40))
			s.h.Claims.Wakes = r.IntN(10) > 0
			for w := range int32(r.IntN(3)) {
				at, often := 1+r.IntN(20), 2+8*r.IntN(2)
				s.refuse(3+w, dur(at), dur(at+1))
				end := history.Op{Kind: history.End, Outcome: history.Failed, Reason: history.Impatient,
					Worker: 3 + w, Call: dur(at)}
				for end.Return = dur(at + 1 + r.IntN(8)); r.IntN(often) > 0 &&
					end.Return < 99; end.Return += dur(1 + r.IntN(9)) {
					s.refuse(3+w, end.Return, end.Return+1)
					s.h.Ops[len(s.h.Ops)-1].Woken = history.Wake(1 + r.IntN(20)/19)
					end.Return++
				}
				s.add(end)
			}
			if r.IntN(4) == 0 {
				s.h.Faults = []history.Injection{
					{Effect: history.Effect{
						Hits: []history.Party{[]history.Party{history.Links, history.Holders}[r.IntN(2)]},
					}},
				}
				at := dur(r.IntN(30))
				s.add(history.Op{Kind: history.Fault, Worker: -1, Key: -1, Call: at, Return: at + 1})
				s.add(history.Op{Kind: history.Heal, Worker: -1, Key: -1, Call: at + 2, Return: at + 3})
			}
			return s
		},
		check: func(c *Case) string {
			l := &livenessCheck{Case: c, misses: map[string]int64{}, end: c.end(), bound: 2500 * time.Millisecond}
			l.unheardReleases()
			return blamed(l)
		},
		oracle: func(c *Case) string {
			l := &livenessCheck{Case: c, misses: map[string]int64{}, end: c.end(), bound: 2500 * time.Millisecond}
			l.eachRelease()
			return blamed(l)
		},
	}
	p.run(t)
}

// eachRelease does the same as unheardReleases, slowly.
func (l *livenessCheck) eachRelease() {
	run, long := 0, 0
	var first, last time.Duration
	end := func() {
		strays := 0
		for _, op := range l.Ops {
			if op.Kind == history.End && op.Reason == history.Impatient && op.Return >= first-l.lease-l.bound &&
				op.Return < last {
				strays++
			}
		}
		if long > 3+2*strays || run > 20+2*strays {
			l.accuse(history.LostWakeup, nil)
		}
		run, long = 0, 0
	}
	for _, r := range l.Ops { // releases of one page, in order
		if r.Kind != history.Release || !l.Claims.Wakes || !l.visits {
			continue
		}
		waiting, earliest, heard := l.eachWaiter(&r)
		switch {
		case waiting == 0 || l.broken(&r):
		case earliest <= r.Return+50*time.Millisecond, heard && earliest <= r.Return+l.bound:
			end()
		default:
			if earliest > r.Return+l.bound {
				long++
			}
			if run++; run == 1 {
				first = r.Call
			}
			last = r.Return
		}
	}
	end()
}

// eachWaiter returns the number of waiters at a release, when the first one wakes, and whether a message wakes one.
func (l *livenessCheck) eachWaiter(r *history.Op) (waiting int, earliest time.Duration, heard bool) {
	earliest = history.Forever
	for _, try := range l.Ops {
		if try.Kind != history.Acquire || try.Outcome != history.Failed || try.Return >= r.Call {
			continue
		}
		wakes, told := l.end, false
		for _, next := range l.Ops {
			at := next.Call
			if next.Kind == history.End {
				at = next.Return
			}
			if next.Worker == try.Worker && next.ID != try.ID && at >= try.Return && at <= wakes {
				wakes, told = at, next.Kind == history.Acquire && next.Woken == history.Signal
			}
		}
		if wakes > r.Call {
			waiting++
			earliest, heard = min(earliest, wakes), heard || told
		}
	}
	return waiting, earliest, heard
}

// broken reports whether links were cut so recently that a message may be lost.
func (l *livenessCheck) broken(r *history.Op) (broken bool) {
	for _, f := range l.Ops {
		if f.Kind != history.Fault || l.Faults[0].Effect.Hits[0] == history.Holders {
			continue
		}
		to := f.Return + 2*time.Second
		after := max(to-f.Call, l.recovery()) + l.lease + l.bound
		broken = broken || f.Call <= r.Return+l.bound && to+after >= r.Call
	}
	return broken
}
