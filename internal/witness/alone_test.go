package witness

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/wire"
)

var overheardHeader = history.Header{Sites: 1, Nodes: 1, Topology: "wire", Wire: "x",
	Bounds:   history.Bounds{Rate: Rate, Round: Round},
	NotAbout: []string{history.Liveness, history.Fairness, history.Updates}}

// TestStreamAloneIsJudged: if only a stream is read, the latest operations form a history that can be judged, even
// after many earlier ones. Right locks are not accused, and an overwritten lock is.
func TestStreamAloneIsJudged(t *testing.T) {
	const ms = time.Millisecond
	epoch := time.UnixMilli(1_700_000_000_000)
	for name, c := range map[string]struct {
		most, visits int
		overwritten  bool
		partial      string
		want         checker.Status
	}{
		"all of it":           {1 << 20, 300, false, "", checker.Inconclusive}, // no waiter is seen
		"the latest":          {200, 3000, false, "", checker.Inconclusive},
		"overwritten":         {1 << 20, 300, true, "", checker.Fail},
		"overwritten, killed": {1 << 20, 300, true, "its writer was killed", checker.Fail},
		"overwritten later":   {200, 3000, true, "", checker.Fail},
	} {
		r := NewReader(Options{Locks: []string{"lock:*"}, Epoch: epoch, Most: c.most, Alone: true, Rolling: true,
			Violation: func(Finding) {}})
		r.Clock(0, 0, 0)
		r.Event(wire.Event{Kind: wire.TapBegan})
		at := time.Duration(0)
		tell := func(args ...string) {
			at += ms
			r.Effect(&wire.Effect{At: at, Args: args})
			r.Tick(at)
		}
		set := func(key, token string) {
			tell("SET", key, token, "PXAT", strconv.FormatInt(epoch.Add(at+time.Second).UnixMilli(), 10))
		}
		for i := range c.visits {
			key, token := fmt.Sprint("lock:", i%7), fmt.Sprint("t", i)
			set(key, token)
			if i%10 == 3 { // the lease is extended, and that is read late now and then
				until := epoch.Add(at + 2*time.Second).UnixMilli()
				at += time.Duration(i%100/10*150) * ms
				tell("PEXPIREAT", key, strconv.FormatInt(until, 10))
			}
			if c.overwritten && i == c.visits-1 {
				set(key, "thief")
				break
			}
			tell("DEL", key)
		}
		h := r.History(&history.History{Header: overheardHeader}, false)
		if len(h.Ops) > c.most || len(h.Ops) < min(c.most/2-10, c.visits) {
			t.Errorf("%s: %d operations of at most %d", name, len(h.Ops), c.most)
		}
		h.Partial = c.partial
		for _, v := range judged(t, h) {
			if v.Checker == "exclusion" && v.Status != c.want {
				t.Errorf("%s: exclusion %v, want %v: %s", name, v.Status, c.want, v.Summary)
			}
			if v.Checker != "exclusion" && !c.overwritten && v.Status == checker.Fail {
				t.Errorf("%s: %s: %s", name, v.Checker, v.Summary)
			}
		}
		if h.Keys != 7 || r.Grants < int64(c.visits) || r.Releases < int64(c.visits)-1 {
			t.Errorf("%s: %d keys, %d grants, %d releases", name, h.Keys, r.Grants, r.Releases)
		}
	}
}

func judged(t *testing.T, h *history.History) []checker.Verdict {
	t.Helper()
	verdicts, err := checker.JudgeHistory(h)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}
