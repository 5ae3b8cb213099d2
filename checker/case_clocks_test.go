package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestSights compares the kept bounds with all bounds.
func TestSights(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range many(2000) {
		var all, kept sights
		drift, at := r.Float64()/100, time.Duration(0)
		for range 1 + r.IntN(30) {
			at += time.Duration(r.IntN(1e6))
			s := sight{at, time.Duration(r.IntN(20_000))}
			all, kept = append(all, s), kept.add(s, drift)
		}
		end, worst := at+time.Duration(r.IntN(1e6)), time.Duration(0)
		for now := time.Duration(0); now <= end; now += 10_000 {
			want := history.Forever
			for _, s := range all {
				want = min(want, s.later(now, drift))
			}
			if got := kept.at(now, drift); got < want || got > want+2 { // up to rounding
				t.Fatalf("at %v %v, want %v of %v and %v", now, got, want, all, kept)
			}
			worst = max(worst, want)
		}
		if got := kept.worst(end, drift); got < worst-2 || got > worst+time.Duration(drift*20_000)+2 {
			t.Fatalf("worst %v, want %v of %v", got, worst, all)
		}
	}
}

// seeing is a history in which workers of two machines take turns at a page for a second. Each load returns after the
// call of the store that it saw. The argument late is the time between the two.
func seeing(late time.Duration) *history.History {
	h := &history.History{Header: history.Header{Workers: 2, Processes: 3, Keys: 1}}
	h.Bounds.Rate = 1500e-6
	h.Bounds.Agreement = history.Agree([]history.Doubt{{Own: 1000}, {Machine: 1, Own: 2000, Offset: 3 * ms},
		{Machine: 2, Own: 1000, Offset: 2 * ms}})
	stored := history.ID(0)
	for n := range 400 {
		w, at := n%2, time.Duration(n+1)*5*ms // call of the store before
		record := func(k int, kind history.Kind, ret time.Duration) history.ID {
			op := history.Op{ID: history.ID(w+1)<<40 | history.ID(2*n+k), Kind: kind, Worker: int32(w),
				Process: int16(w + 1),
				Call:    ret - 10*time.Microsecond, Return: ret, Outcome: history.OK}
			if kind == history.Load {
				op.Seen = stored
			}
			h.Ops = append(h.Ops, op)
			return op.ID
		}
		record(1, history.Load, at+late)
		stored = record(2, history.Store, at+5*ms+10*time.Microsecond)
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// TestWhatLoadsSawBoundsClocks: by message exchanges, the clocks of two machines differ by at most 5 ms; by loads, the
// difference is much smaller. The suite itself made no load, so its own clock is known no better than before.
func TestWhatLoadsSawBoundsClocks(t *testing.T) {
	h := seeing(200 * time.Microsecond)
	before := h.Bounds.Between(0, 1)
	c, err := Prepare(h)
	if err != nil {
		t.Fatal(err)
	}
	// There is a pair of loads every 10 ms. Each gives a bound that holds for some time before and after it.
	if got := c.slack(1, 2); got < 200*time.Microsecond || got > 300*time.Microsecond {
		t.Errorf("the slack of two machines is %v", got)
	}
	if c.slack(0, 1) < before || h.Bounds.Between(1, 2) != 5003*time.Microsecond ||
		c.exchanged != 5003*time.Microsecond || c.slack(1, 1) != 0 {
		t.Errorf("with the suite %v, %v before; the history says %v, %v", c.slack(0, 1), before,
			h.Bounds.Between(1, 2), c.exchanged)
	}
	if v := Exclusion.Check(c); !strings.Contains(v.Summary, "exchanges 5.00 ms") {
		t.Error(v.Summary)
	}
	h.Bounds.Doubts = nil // as in an old file, without doubts
	if c, err = Prepare(h); err != nil || c.Bounds.Slack != h.Bounds.Slack {
		t.Errorf("%v, %v", c.Bounds, err)
	}
}

// TestClocksThatContradictLoads: each machine saw the other's stores before they were called. So the clocks contradict
// each other, although message exchanges do not show that. No checker passes, and every verdict gives the reason. A
// lost page view is still found, because that needs no clock.
func TestClocksThatContradictLoads(t *testing.T) {
	c, err := Prepare(seeing(-500 * time.Microsecond))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := Judge(c)
	if err != nil || len(verdicts) == 0 {
		t.Fatal(verdicts, err)
	}
	for _, v := range verdicts {
		if v.Status != NotJudged && v.Cause != "exclusion" &&
			(v.Status != Inconclusive || !strings.Contains(v.Summary, "contradict what loads have seen")) {
			t.Errorf("%s: %s, %s", v.Checker, v.Status, v.Summary)
		}
	}
}
