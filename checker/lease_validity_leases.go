package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
)

// leases collects what is wrong with the leases of a case.
type leases struct {
	ruler
	blames[testimony]
	misses map[string]int64

	extends bool // the history has extensions

	// answers with a deadline later than call + T1; the request may have been sent late
	late      []period
	firstLate [2]int32      // the first of these answers: hold and operation
	quick     time.Duration // latency of the fastest of these answers
}

// leaseCauses lists the causes of failed verdicts of this checker, the worst first.
var leaseCauses = []string{history.SilentReacquire, history.OverClaim, history.RenewalFailure, history.ForeignRelease,
	history.PrematureLoss, history.FalseExtension, history.TTLTooLong}

func (l *leases) fail(cause, story string, evidence ...history.Op) {
	l.blame(cause, testimony{evidence, []string{story}}, nil)
}

// released tells whether a hold may have been released before a moment, so that its extension fails.
func (l *leases) released(h *hold, by time.Duration) bool {
	return h.Release >= 0 && l.c.Ops[h.Release].Outcome != history.Failed && l.c.Ops[h.Release].Call < by
}

// outlived looks for a proof, before the moment `by`, that servers kept a hold beyond `last`, the latest end of its
// lease. Either its key was seen with a longer TTL, or another worker was refused and no other hold explains that.
// Then the hold need not have expired. It returns nil if there is no proof.
func (l *leases) outlived(h *hold, last, by time.Duration) (shown *history.Op, story string) {
	token := l.c.acquire(h).Token
	for _, op := range l.c.sightsOf(h.Key) {
		if token != 0 && op.Token == token && op.Return < by && op.Until > last {
			return op, fmt.Sprintf("its key was seen at %s, to expire at %s", clock(op.Call), clock(op.Until))
		}
	}
	if n := l.refusedFor(h, last, by); n >= 0 {
		op := &l.c.Ops[n]
		return op, fmt.Sprintf("%s was refused at %s, and no other worker had the lock", who(op.Worker),
			clock(op.Return))
	}
	return nil, ""
}

// granting visits the calls that gave a hold its leases: the grant, and each successful extension.
func (c *Case) granting(h *hold, visit func(i int32)) {
	visit(h.acquire)
	for _, i := range c.extends(h) {
		if c.Ops[i].Outcome == history.OK {
			visit(i)
		}
	}
}

// unanswered looks for renewals of a hold that had no answer, or reached no server, for an unknown reason. If they
// took too much of the time before the lease ended, it returns a window that covers them; otherwise nil. Normally the
// times of these requests are added up. In two cases, all the time since the first request counts: messages were late,
// or several requests were sent and some reached no server. If messages were late, a lock that gave up
// a request must also have sent it again. A call that still waits for its answer cannot do that.
func (l *leases) unanswered(h *hold, from, to time.Duration) *window {
	w := &window{
		name:   "renewals of " + who(h.Worker) + " had no answer, and why is not known",
		period: period{history.Forever, from},
	}
	silent, asked, unreached, gaveUp := time.Duration(0), int64(0), false, false
	for _, i := range l.c.extends(h) {
		op := &l.c.Ops[i]
		missed := op.Outcome == history.Failed && op.Reason == history.Unreachable && !l.c.seesLateness() &&
			op.Latency() > l.c.promptness() // a prompt error is the lock's own
		if (op.Outcome == history.Unknown || missed || op.Return > to) && op.Return > w.to && op.Call < to {
			asked++
			gaveUp = gaveUp || missed || op.Outcome == history.Unknown && op.Return != history.Forever
			silent += min(op.Return, to) - max(op.Call, w.to)
			w.from, w.to, unreached = min(w.from, op.Call), op.Return, unreached || missed
		}
	}
	again := min(2, int64((to-from)/max(Margin(h.TTL), 1))) // number of requests for which there was time, up to 2
	late := l.c.atWork(from, to, func(e *history.Effect) bool { return e.Hit(history.Links) }) != nil
	switch {
	case late && gaveUp && asked < again:
		return nil
	case late || unreached && asked > 1: // the lock asked again and again, and gave up each time before the answer came
		silent = min(w.to, to) - w.from
	}
	if silent < enough(h, from, to) {
		return nil
	}
	return w
}
