package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// strayed is a history of a lock that keeps tokens in its keys. The key is seen in five visits. Then a try of w02,
// from 1000 to 1010 ms, is refused as busy. All leases are 300 ms long.
func strayed() *script {
	s := newScript()
	s.Claims.Cleans, s.Nodes, s.Sites = true, 1, 1
	for n := range time.Duration(5) {
		a := s.acquire(1, 100*n, 100*n+1, 300)
		s.sees(100*n+50, uint64(a), 100*n+300)
		s.release(a, 100*n+60, 100*n+61)
	}
	s.busy(2, 1000, 1010).TTL = 300 * ms
	return s
}

// sees adds a sight of a key, with its token and the moment at which it will expire.
func (s *script) sees(at time.Duration, token uint64, until time.Duration) {
	op := s.op(history.Sight, -1, at, at)
	op.Token, op.Until = token, until*ms
}

// strange is a token that no call has.
const strange = 77

// keysOfNoCall are histories of strayed with a key of a strange token, and the cause that the checker finds.
var keysOfNoCall = map[string]struct {
	write func(*script)
	cause string
}{
	"of a refused try": {func(s *script) { s.sees(1050, strange, 1305) }, history.Phantom},
	"its token is not known": {func(s *script) {
		s.last().Token = 0
		s.sees(1050, strange, 1305)
	}, history.Phantom},
	"seen again and again": {func(s *script) {
		s.sees(1050, strange, 1305)
		s.sees(1150, strange, 1305)
	}, history.Phantom},
	"beside others that were late": {func(s *script) {
		s.sees(1050, strange, 1305)
		s.busy(3, 1051, 1052)
		s.busy(3, 1200, 1201)
	}, history.Phantom},
	"no try was asking then":      {func(s *script) { s.sees(1050, strange, 1250) }, ""},
	"the try is not answered yet": {func(s *script) { s.sees(1008, strange, 1305) }, ""},
	"another is not answered yet": {func(s *script) {
		s.busy(3, 1004, 1100).TTL = 300 * ms
		s.sees(1050, strange, 1305)
	}, ""},
	"one whose outcome is unknown": {func(s *script) {
		op := s.busy(3, 900, 950)
		op.Outcome, op.Reason, op.TTL = history.Unknown, history.Timeout, 300*ms
		s.sees(1050, strange, 1305)
	}, ""},
	"a hold that was not given back": {func(s *script) {
		s.acquire(3, 800, 801, 900)
		s.sees(1050, strange, 1305)
	}, ""},
	"a hold that was lost": {func(s *script) {
		a := s.acquire(3, 700, 701, 100)
		s.denied(a, 900, 901)
		s.sees(1050, strange, 1305)
	}, history.Phantom},
	"a lock that changes its tokens": {func(s *script) {
		a := s.acquire(3, 700, 701, 300)
		s.sees(750, 78, 1100)
		s.release(a, 800, 801)
		s.sees(1050, strange, 1305)
	}, ""},
	"a lock that promises nothing": {func(s *script) { s.Claims.Cleans = false; s.sees(1050, strange, 1305) }, ""},
	"more servers than one":        {func(s *script) { s.Nodes = 2; s.sees(1050, strange, 1305) }, ""},
	"what is missing is not known": {func(s *script) { s.Partial = "cut"; s.sees(1050, strange, 1305) }, ""},
	"it never expires": {func(s *script) {
		s.sees(1050, strange, 0)
		s.last().Until = history.Forever
	}, ""},
	"the server's clock was set": {func(s *script) {
		s.fault(clockSet, 1020, 1030)
		s.sees(1050, strange, 1305)
	}, ""},
	"a lock that keeps another call's": {func(s *script) {
		s.sees(130, uint64(s.Ops[0].ID), 400) // the token of the hold before
		s.sees(1050, strange, 1305)
	}, ""},
	"made by a lease that lingers": {func(s *script) {
		s.Bounds.Linger = 800 * ms
		s.sees(1050, strange, 2105)
	}, history.Phantom},
	"one whose outcome is unknown, of a lease that lingers": {lingers, ""},
	"on another page": {func(s *script) { s.Keys = 2; s.sees(1050, strange, 1305); s.last().Key = 1 }, ""},
}

// TestAKeyOfNoCall: a refused try that made a key with an unknown token is a phantom. The lock is not accused if
// another call can have made the key, or if its keys contain something else than tokens.
func TestAKeyOfNoCall(t *testing.T) {
	for name, tt := range keysOfNoCall {
		s := strayed()
		tt.write(s)
		c := s.prepare(t)
		v := Exclusion.Check(c)
		if v.Cause != tt.cause || v.Status == Fail && v.Violations != 1 {
			t.Errorf("%s: got %s %q, %d times, want %q: %s", name, v.Status, v.Cause, v.Violations, tt.cause, v.Summary)
		}
		if story := strings.Join(v.Story, "\n"); tt.cause != "" &&
			!strings.Contains(story, "w02 was told at 1.010000 s that it was refused") {
			t.Errorf("%s: the story is %s", name, story)
		}
	}
}

// lingers is a try without an answer. Its lease is 1.2 s long, and may last 0.8 s longer. Within that time, a key is
// seen whose token no hold has.
func lingers(s *script) {
	s.Bounds.Linger = 800 * ms
	op := s.busy(3, 600, 900)
	op.Outcome, op.Reason, op.TTL = history.Unknown, history.Timeout, 1200*ms
	s.busy(2, 3395, 3405).TTL = 1200 * ms
	s.sees(3450, 77, 4600)
}

var clockSet = history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime}

// TestStraysAgainstAllCalls compares with an oracle that looks at every call for every key that was seen.
func TestStraysAgainstAllCalls(t *testing.T) {
	p := property{
		histories: 40_000, draw: drawStrays,
		check: func(c *Case) string { return fmt.Sprint(c.examine().incidents[history.Phantom]) },
		oracle: func(c *Case) string {
			phantoms, known, other := map[uint64]bool{}, 0, false
			last := map[uint64]history.Op{}
			for _, s := range c.Ops {
				if s.Kind != history.Sight {
					continue
				}
				if all := open(c, s, true); len(all) > 0 && !slices.Contains(all, s.Token) {
					other = true
				}
				if slices.ContainsFunc(c.Ops, func(a history.Op) bool {
					return a.Kind == history.Acquire && a.Outcome != history.Failed && a.Key == s.Key &&
						a.Token == s.Token && a.Call <= s.Return
				}) {
					known++
				}
				if !slices.ContainsFunc(c.Ops, func(a history.Op) bool {
					return a.Kind == history.Acquire && a.Token == s.Token
				}) {
					last[s.Token] = s
				}
			}
			for token, s := range last {
				asking := func(a history.Op) bool {
					made := s.Until - a.TTL
					return a.Kind == history.Acquire && a.Key == s.Key && a.TTL > 0 && a.Call-2*ms <= made &&
						made <= a.Return+2*ms
				}
				still := slices.ContainsFunc(c.Ops, func(a history.Op) bool { return asking(a) && a.Return > s.Call })
				refused := slices.ContainsFunc(c.Ops, func(a history.Op) bool {
					return asking(a) && a.Reason == history.Busy
				})
				if refused && !still && len(open(c, s, false)) == 0 {
					phantoms[token] = true
				}
			}
			if other || known < 3 {
				return "0"
			}
			return fmt.Sprint(len(phantoms))
		},
	}
	p.run(t)
}

// open returns the tokens of the page's holds that were open when the key was seen. If surely is true, these are
// the holds that were certainly open; otherwise those that may have been. An Acquire without an answer may take
// effect late.
func open(c *Case, s history.Op, surely bool) (tokens []uint64) {
	for _, a := range c.Ops {
		if a.Kind != history.Acquire || a.Outcome == history.Failed || a.Key != s.Key {
			continue
		}
		from, to, believed := a.Call, a.Return+a.TTL, a.Until
		for _, r := range c.Ops {
			if r.Kind == history.Release && r.Hold == a.ID {
				believed = min(believed, r.Call)
				to = r.Return
			}
		}
		if a.Outcome == history.Unknown {
			to = a.Return + 2*time.Second
		}
		if surely {
			from, to = a.Return, believed-1
		}
		if (!surely || a.Outcome == history.OK) && from <= s.Call && s.Call <= to {
			tokens = append(tokens, a.Token)
		}
	}
	return tokens
}

// drawStrays draws visits and tries of three workers on two pages, and sights of keys. Some tokens belong to no call.
func drawStrays(r *rand.Rand) *builder {
	s := newBuilder()
	s.h.Claims, s.h.Nodes, s.h.Keys = history.Claims{Excludes: true, Expires: true, Cleans: true}, 1, 2
	at := func(n int) time.Duration { return time.Duration(n) * 10 }
	now := make([]int, 3)
	for range 4 + r.IntN(8) {
		w := r.IntN(3)
		from := now[w] + r.IntN(4)
		to := from + 1 + r.IntN(3)
		op := history.Op{Kind: history.Acquire, Worker: int32(w), Key: int32(r.IntN(2)), Call: at(from),
			Return: at(to) - 1, TTL: 100, Token: uint64(1 + len(s.h.Ops))}
		switch n := r.IntN(10); {
		case n < 5:
			op.Outcome, op.Reason = history.Failed, history.Busy
		case n < 6:
			op.Outcome, op.Reason = history.Unknown, history.Timeout
		default:
			op.Outcome, op.Until = history.OK, at(from)+100
		}
		hold := s.add(op)
		if now[w] = to; op.Outcome == history.OK {
			for range r.IntN(3) {
				s.sight(op.Key, at(to)+5, op.Token, op.Until)
			}
			if r.IntN(5) > 0 {
				s.add(history.Op{Kind: history.Release, Worker: op.Worker, Key: op.Key, Hold: hold, Call: at(to + 1),
					Return: at(to+2) - 1, Outcome: history.OK})
				now[w] = to + 2
			}
		}
	}
	for i := range r.IntN(4) {
		seen := at(2+r.IntN(20)) + 5
		s.sight(int32(r.IntN(2)), seen, 1000+uint64(r.IntN(i+1)), seen+time.Duration(r.IntN(100)))
	}
	return s
}

func (s *builder) sight(key int32, at time.Duration, token uint64, until time.Duration) {
	s.add(history.Op{Kind: history.Sight, Outcome: history.OK, Worker: -1, Key: key, Call: at, Return: at,
		Token: token, Until: until})
}
