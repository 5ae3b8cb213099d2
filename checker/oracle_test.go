package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"hammerlock/history"
)

// Small random histories of one page are compared with oracles that try every order and every instant. Times are
// whole nanoseconds, few enough to be tried one by one.

const (
	tinyTTL = 9 // T1 = 8, T2 = 10
	horizon = 64
)

// tiny draws a history of a few holds with random intervals.
func tiny(draw func(n int) int) *history.History {
	s := newScript()
	s.Bounds = history.Bounds{Round: 1}
	s.Claims.Expires = draw(4) > 0
	holds := 2 + draw(3)
	for w := range int32(holds) {
		call := time.Duration(draw(24))
		ret := call + 1 + time.Duration(draw(3))
		id := s.acquire(w, 0, 0, 0)
		op := s.last()
		op.Call, op.Return, op.TTL, op.Until = call, ret, tinyTTL, call+time.Duration(2+draw(12))
		if draw(8) == 0 {
			op.Outcome, op.Until = history.Unknown, 0
		}
		at := ret + time.Duration(draw(5)) // 0 = a hold of no length
		if op.Outcome == history.OK && draw(3) == 0 {
			x := s.extend(id, 0, 0, 0)
			x.Call, x.Return, x.TTL, x.Until = at, at+1+time.Duration(draw(3)), tinyTTL, at+time.Duration(2+draw(12))
			if draw(4) == 0 {
				x.Outcome, x.Until = history.Unknown, 0
			}
			at = x.Return + 1 + time.Duration(draw(4))
		}
		if draw(4) == 0 {
			x := s.on(id, history.Load, 0, 0)
			x.Call, x.Return = at, at+1
			at += 1 + time.Duration(draw(12))
			x = s.on(id, history.Store, 0, 0)
			x.Call, x.Return = at, at+1
			at++
			if uses := draw(3); uses > 0 { // a leader goes on storing, or at least loading
				at += time.Duration(draw(4))
				x = s.on(id, history.Load, 0, 0)
				x.Call, x.Return = at, at+1
				if at += 1 + time.Duration(draw(8)); uses > 1 {
					x = s.on(id, history.Store, 0, 0)
					x.Call, x.Return = at, at+1
					at++
				}
			}
		}
		if draw(6) == 0 {
			x := s.op(history.Crash, w, 0, 0)
			x.Call = ret + time.Duration(draw(8))
			x.Return = x.Call
		}
		if outcome := draw(5); outcome < 4 {
			x := s.release(id, 0, 0)
			x.Call = at + time.Duration(draw(10))
			x.Return, x.Outcome = x.Call+1+time.Duration(draw(3)),
				[]history.Outcome{history.OK, history.OK, history.Unknown, history.Failed}[outcome]
			if x.Outcome == history.Failed {
				x.Reason = history.Lost
			}
		}
	}
	return &s.History
}

func prepared(t testing.TB, h *history.History) *Case {
	s := script{History: *h}
	return s.prepare(t)
}

// told has the operations of a hold, which the oracles look up one by one, without the code under test.
type told struct {
	acquire, extend, load, store, release, crash *history.Op
}

func read(h *history.History) []told {
	var list []told
	for i := range h.Ops {
		var loaded *history.Op
		if a := &h.Ops[i]; a.Kind == history.Acquire && a.Outcome != history.Failed {
			t := told{acquire: a}
			for k := range h.Ops {
				op := &h.Ops[k]
				if op.Kind == history.Crash && op.Worker == a.Worker {
					t.crash = op
				}
				if op.Hold != a.ID {
					continue
				}
				switch op.Kind {
				case history.Extend:
					t.extend = op
				case history.Load:
					switch loaded = op; {
					case t.load == nil:
						t.load = op
					case a.Permits > 0: // a reader loads again
						t.store = op
					}
				case history.Store: // the last store counts, with its load
					t.load, t.store = loaded, op
				case history.Release:
					t.release = op
				}
			}
			list = append(list, t)
		}
	}
	return list
}

// extended reports whether the hold was certainly extended.
func (t told) extended() bool { return t.extend != nil && t.extend.Outcome == history.OK }

func (t told) believesAt(at int) bool {
	now := time.Duration(at)
	until := t.acquire.Until
	if t.extended() {
		until = t.extend.Until
	}
	return t.acquire.Outcome == history.OK && now >= t.acquire.Return && now < until &&
		(t.release == nil || now < t.release.Call) && (t.crash == nil || now < t.crash.Call)
}

// tooMany reports whether holds exclude each other: they have too many permits, or one of several is exclusive.
func tooMany(permits int, list []told) bool {
	sum, whole := 0, false
	for _, t := range list {
		n := int(t.acquire.Permits)
		if whole = whole || n == 0; n == 0 {
			n = permits
		}
		sum += n
	}
	return permits == 0 && whole && len(list) > 1 || permits > 0 && sum > permits
}

// tooManyBelieve tries every instant: do too many holders believe then?
func tooManyBelieve(permits int, list []told) bool {
	for at := range horizon {
		var now []told
		for _, t := range list {
			if t.believesAt(at) {
				now = append(now, t)
			}
		}
		if tooMany(permits, now) {
			return true
		}
	}
	return false
}

// lives lists pairs of instants. The first one is an instant at which the hold may have begun on the servers. The
// second one is the earliest at which it may then have ended. It tries all instants of the extension, the release and
// the expiry.
func (t told) lives(expires bool) [][2]int {
	t1, t2 := tinyTTL-1, tinyTTL+1
	if !expires {
		t1, t2 = 10*horizon, 10*horizon
	}
	var list [][2]int
	for x := int(t.acquire.Call); x <= int(t.acquire.Return); x++ {
		first := -1
		starts := []int{x} // possible starts of the last lease
		if t.extend != nil {
			from, to := int(t.extend.Call), int(t.extend.Return)
			if starts = nil; !t.extended() {
				starts, to = []int{x}, x+t2 // the extension did nothing, or took effect while the lease lasted
			}
			for w := from; w <= to && (!expires || w <= x+t2); w++ {
				starts = append(starts, w)
			}
			if !expires {
				starts = []int{x}
			}
		}
		for _, w := range starts {
			for life := t1; life <= t2; life++ {
				if end := t.endAfter(x, w+life); end >= 0 && (first < 0 || end < first) {
					first = end
				}
			}
		}
		if first >= 0 {
			list = append(list, [2]int{x, first})
		}
	}
	return list
}

// endAfter returns the earliest instant at which a hold can have ended that began at x and would expire at expiry. It
// returns -1 if the answers are impossible then.
func (t told) endAfter(x, expiry int) int {
	if t.release == nil {
		return expiry
	}
	rc, rr := int(t.release.Call), int(t.release.Return)
	switch t.release.Outcome {
	case history.OK:
		if rc <= expiry {
			return max(rc, x)
		}
		return -1
	case history.Unknown:
		return min(max(rc, x), expiry)
	default:
		if expiry <= rr {
			return expiry
		}
		return -1
	}
}

// possible tries all orders and instants. The result legal says whether holds that exclude each other need not
// overlap. The result sound is false if some hold alone cannot have had its answers, which another checker judges.
func possible(list []told, expires bool) (legal, sound bool) {
	var lives [][][2]int
	var granted []told
	for _, t := range list {
		if t.acquire.Outcome != history.OK {
			continue
		}
		granted = append(granted, t)
		l := t.lives(expires)
		if len(l) == 0 {
			return false, false
		}
		lives = append(lives, l)
	}
	var place func(n int, taken [][2]int) bool
	place = func(n int, taken [][2]int) bool {
		if n == len(lives) {
			return true
		}
		for _, life := range lives[n] {
			free := true
			for i, o := range taken {
				free = free && (life[1] <= o[0] || o[1] <= life[0] || !tooMany(0, []told{granted[n], granted[i]}))
			}
			if free && place(n+1, append(taken, life)) {
				return true
			}
		}
		return false
	}
	return place(0, nil), true
}

func disagreement(t testing.TB, h *history.History) string {
	c := prepared(t, h)
	list := read(h)
	s := newSweeper(c)
	for _, holds := range c.byKey {
		collided := false
		s.beliefs(holds, func(pair, bool) { collided = true })
		if want := tooManyBelieve(0, list); collided != want {
			return fmt.Sprintf("beliefs: got %v, want %v", collided, want)
		}
		lost, short := false, len(s.moments(holds, true)) > 0
		s.losses(holds, true, func(pair) { lost = true })
		s.proven(holds, true, func(p pair) { lost = lost || s.c.holds[p.second].Outcome == history.OK })
		// If a hold's lease may have been over before its answer, its place in the order is unknown: then only a
		// failure is certain.
		if legal, sound := possible(list, h.Claims.Expires); sound && lost == legal && (lost || !short) {
			return fmt.Sprintf("losses: got %v, want %v", lost, !legal)
		}
		late := false
		s.overruns(holds, func(p pair) { late = late || p.second >= 0 })
		if want := interleaved(list, h.Fenced); late != want {
			return fmt.Sprintf("overruns: got %v, want %v", late, want)
		}
	}
	return ""
}

// interleaved tries every instant. It looks for a holder that began to rely on the lock after another's belief had
// ended, but before that other holder's late store. With a fence, it must also have loaded before that store.
func interleaved(list []told, fenced bool) bool {
	for _, t := range list {
		if t.store == nil || t.acquire.Outcome != history.OK {
			continue
		}
		until := t.acquire.Until
		if t.extended() {
			until = t.extend.Until
		}
		if t.release != nil {
			until = min(until, t.release.Call)
		}
		for _, o := range list {
			if o.acquire == t.acquire || o.acquire.Return < until || !tooMany(0, []told{o, t}) || fenced &&
				(o.load == nil || o.load.Return >= t.store.Call) {
				continue
			}
			for at := int(max(until, t.load.Call)); at < int(t.store.Call); at++ {
				if o.believesAt(at) {
					return true
				}
			}
		}
	}
	return false
}

func dump(h *history.History) string {
	s := fmt.Sprintf("expires %v\n", h.Claims.Expires)
	for _, op := range h.Ops {
		s += fmt.Sprintf("w%d %v [%d, %d] %v until %d permits %d\n", op.Worker, op.Kind, op.Call, op.Return, op.Outcome,
			op.Until, op.Permits)
	}
	return s
}

func TestSweepsAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range many(120_000) {
		h := tiny(r.IntN)
		h.Fenced = r.IntN(3) == 0
		if wrong := disagreement(t, h); wrong != "" {
			t.Fatalf("%s\n%s", wrong, dump(h))
		}
	}
}

func TestSweepsAgainstOracleShrinking(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := tiny(func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") })
		if wrong := disagreement(t, h); wrong != "" {
			r.Fatalf("%s\n%s", wrong, dump(h))
		}
	})
}

// The exact sweep and porcupine give the same verdict if leases have no clock.
func TestPorcupineAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	illegal := 0
	histories := many(20_000)
	for range histories {
		h := tiny(r.IntN)
		c := prepared(t, h)
		var v Verdict
		v.Misses = map[string]int64{}
		c.compareWithPorcupine(&v, c.byKey[0])
		if v.Cause == harnessError {
			t.Fatalf("%s\n%s", v.Summary, dump(h))
		}
		illegal += int(v.Violations)
	}
	if illegal < histories/20 || illegal > histories*19/20 {
		t.Errorf("got %d illegal histories of %d, want both kinds", illegal, histories)
	}
}

// If the sweep, which knows clocks, calls a history legal, porcupine, which does not, calls it legal, too.
func TestClocksOnlyForbid(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range many(10_000) {
		h := tiny(r.IntN)
		c := prepared(t, h)
		s := newSweeper(c)
		lost := false
		s.losses(c.byKey[0], true, func(pair) { lost = true })
		s.proven(c.byKey[0], true, func(pair) { lost = true })
		if !lost && porcupine.CheckOperationsTimeout(leaseModel, s.encode(s.certain(c.byKey[0])),
			0) == porcupine.Illegal {
			t.Fatalf("porcupine finds more than the sweep\n%s", dump(h))
		}
	}
}
