package workload

import (
	"context"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// MostPages is the largest number of pages of a visit, for a lock that takes several keys in one call.
const MostPages = 3

// Lanes is the number of lanes (streams of recorded operations) of each worker: one for each page of a visit.
// history.Header.Caller maps all these lanes to their worker.
func Lanes(c *history.Claims) int {
	if c.Sets {
		return MostPages
	}
	return 1
}

// spot is one of the pages of a visit.
type spot struct {
	lane *history.Lane
	key  int32
	page *Page
	hold history.ID // ID of the Acquire that the lock granted; 0 = none

	// For the pages after the first one:
	op      *history.Op // record of the open call
	seen    Count
	outcome history.Outcome // outcome for this page; Unknown without a reason = the same as for the first page
	reason  history.Reason
}

// choose draws the additional pages of a visit. Each number of pages and each order is equally likely.
func (w *worker) choose(g *grant) {
	g.more = g.more[:0]
	if !w.group.Claims.Sets {
		return
	}
	n := w.rand.IntN(min(MostPages, w.shape.Keys))
	for len(g.more) < n {
		key := int32(w.rand.IntN(w.shape.Keys))
		if key == g.key || slices.ContainsFunc(g.more, func(s spot) bool { return s.key == key }) {
			continue
		}
		lane := w.group.Lanes[w.number+(len(g.more)+1)*w.shape.Workers]
		lane.Due = w.lane.Due
		g.more = append(g.more, spot{lane: lane, key: key, page: &w.group.Pages[key]})
	}
}

// open records the beginning of a lock call for each additional page. It must be called before the lock
// sends a command.
func (g *grant) open(kind history.Kind) {
	for i := range g.more {
		s := &g.more[i]
		if s.op = s.lane.Call(kind, s.key); kind != history.Acquire {
			s.op.Hold = s.hold // set it now: if the process is killed, the record stays as it is
		}
	}
}

// close records the end of a lock call for each additional page, with the result of the first page. Afterwards, the
// caller records the first page.
func (g *grant) close(first *history.Op) {
	for i := range g.more {
		s := &g.more[i]
		op := s.op
		if op.Kind == history.Acquire {
			s.hold = op.ID
		}
		op.Hold, op.Outcome, op.Reason, op.Woken = s.hold, first.Outcome, first.Reason, first.Woken
		op.Token, op.TTL, op.Until, op.Fence = first.Token, first.TTL, first.Until, first.Fence
		s.lane.Return(op)
	}
}

// answeredAll classifies the result of a call that concerns all pages of a visit. If the lock reports a loss, it
// does not say which page it lost, so the outcome is Unknown.
func (w *worker) answeredAll(kind history.Kind, err error) (history.Outcome, history.Reason) {
	outcome, reason := w.answered(kind, err)
	if reason == history.Lost && len(w.grant.more) > 0 {
		outcome = history.Unknown
	}
	return outcome, reason
}

// mark records an event of the visit for each additional page.
func (g *grant) mark(what history.Op) {
	for i := range g.more {
		s := &g.more[i]
		op := what
		op.Key, op.Hold = s.key, s.hold
		s.lane.Mark(&op)
	}
}

// endMore records the end of the visit for the additional pages.
func (w *worker) endMore(outcome history.Outcome, reason history.Reason) {
	for i := range w.grant.more {
		s := &w.grant.more[i]
		op := history.Op{Kind: history.End, Key: s.key, Call: w.began, Until: w.free, Outcome: outcome, Reason: reason}
		if s.outcome != history.Unknown || s.reason != history.None {
			op.Outcome, op.Reason = s.outcome, s.reason
		}
		s.lane.Mark(&op)
	}
	w.grant.more = w.grant.more[:0]
}

// loadMore reads the counters of the additional pages.
func (w *worker) loadMore(ctx context.Context, g *grant) (outcome history.Outcome, reason history.Reason) {
	outcome = history.OK
	for i := 0; i < len(g.more) && outcome == history.OK; i++ {
		s := &g.more[i]
		s.seen, outcome, reason = w.load(ctx, g, s)
	}
	return outcome, reason
}

// storeMore writes the counters of the additional pages. It writes no more of them after the holder's deadline, or
// after the lock has reported the loss of the hold.
func (w *worker) storeMore(ctx context.Context, g *grant) {
	for i := range g.more {
		s := &g.more[i]
		if s.outcome, s.reason = history.Failed, history.Lost; !w.late(g) && !w.lost(g) {
			s.outcome, s.reason = w.store(g, s, s.seen, func(c Count) error {
				return w.group.Counter.Store(ctx, s.page.Views, c)
			})
		}
	}
}

// askAll acquires the locks of all pages of a visit in one call.
func (w *worker) askAll(ctx context.Context, g *grant, called time.Duration) (locks.Lease, error) {
	keys := []string{g.page.Lock}
	for i := range g.more {
		keys = append(keys, g.more[i].page.Lock)
	}
	return w.lock.(locks.Several).AcquireAll(ctx, keys, w.ttl(), max(w.lane.Due+w.patience()-called, 0))
}
