package workload

import (
	"context"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// MostPages is how many pages a visit takes at most, of a lock that takes several keys in one call.
const MostPages = 3

// Lanes is how many lanes a worker writes for its visits: one for each page of a visit. The others are those of the
// workers that history.Header.Caller tells of.
func Lanes(c *history.Claims) int {
	if c.Sets {
		return MostPages
	}
	return 1
}

// spot is a page of a visit.
type spot struct {
	lane *history.Lane
	key  int32
	page *Page
	hold history.ID // the operation that was granted it; 0 = none

	// For a page beside the first one:
	op      *history.Op // the call that is open
	seen    Count
	outcome history.Outcome // of its store; Unknown = the same as that of the first page
	reason  history.Reason
}

// choose draws the other pages of a visit: each number of pages is as likely as another, and so is each order.
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

// open opens a call for the other pages that was opened for the first one: nothing may have been sent.
func (g *grant) open(kind history.Kind) {
	for i := range g.more {
		s := &g.more[i]
		if s.op = s.lane.Call(kind, s.key); kind != history.Acquire {
			s.op.Hold = s.hold // at once: a killed process leaves it so
		}
	}
}

// close ends it as it ended for the first page, which is recorded last.
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

// answeredAll is answered, of a call for all pages of a visit: if one was lost, it is not certain of which.
func (w *worker) answeredAll(kind history.Kind, err error) (history.Outcome, history.Reason) {
	outcome, reason := w.answered(kind, err)
	if reason == history.Lost && len(w.grant.more) > 0 {
		outcome = history.Unknown
	}
	return outcome, reason
}

// mark records something that happened to the visit for its other pages.
func (g *grant) mark(what history.Op) {
	for i := range g.more {
		s := &g.more[i]
		op := what
		op.Key, op.Hold = s.key, s.hold
		s.lane.Mark(&op)
	}
}

// endMore tells that the visit of the other pages is over.
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

// loadMore reads the counter for the other pages.
func (w *worker) loadMore(ctx context.Context, g *grant) (outcome history.Outcome, reason history.Reason) {
	outcome = history.OK
	for i := 0; i < len(g.more) && outcome == history.OK; i++ {
		s := &g.more[i]
		s.seen, outcome, reason = w.load(ctx, g, s)
	}
	return outcome, reason
}

// storeMore writes them. A holder that heeds its deadline may be late meanwhile.
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

// askAll asks for all pages of a visit in one call.
func (w *worker) askAll(ctx context.Context, g *grant, called time.Duration) (locks.Lease, error) {
	keys := []string{g.page.Lock}
	for i := range g.more {
		keys = append(keys, g.more[i].page.Lock)
	}
	return w.lock.(locks.Several).AcquireAll(ctx, keys, w.ttl(), max(w.lane.Due+w.patience()-called, 0))
}
