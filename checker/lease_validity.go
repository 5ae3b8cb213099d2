package checker

import (
	"cmp"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var leaseValidity = Checker{
	Name:    "lease-validity",
	Doc:     "a lease lasts as long as it was granted for, and its holder never believes in it for longer",
	Causes:  leaseCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Excludes },
	Check:   checkLeaseValidity,
}

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

func checkLeaseValidity(c *Case) Verdict {
	v := Verdict{Misses: map[string]int64{}}
	l := &leases{ruler: ruler{c: c}, misses: v.Misses, quick: history.Forever}
	for _, n := range c.byCall {
		if h := &c.holds[n]; h.Outcome == history.OK {
			c.granting(h, func(i int32) {
				v.Exposed++
				l.claim(n, i, h)
			})
			l.loss(n, h, c.tell(c.holdsOf(h.Key)))
		}
	}
	for k := range c.slipped {
		l.told(k)
	}
	l.habit()
	worst := l.into(&v, leaseCauses)
	switch {
	case v.Status == Fail:
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s of %s wrong, the worst by %s", human.Count(v.Violations),
			human.Quantity(max(v.Exposed, v.Violations), "lease"), v.Cause)
	case l.excused > 0:
		v.Summary = l.excuseText("leases that were not renewed")
	case v.Exposed == 0:
		v.Summary = "no lease was granted"
	default:
		v.Status = Pass
		v.Summary = none("wrong leases", v.Exposed, "leases")
		if n := v.Misses[history.PrematureLoss]; n > 0 {
			v.Summary += fmt.Sprintf("; a fault ended %s early", human.Count(n))
		}
	}
	v.Told = l.heard()
	if text := v.Told.Text(); text != "" {
		v.Summary += "; " + text
	}
	return v
}

func (l *leases) fail(cause, story string, evidence ...history.Op) {
	l.blame(cause, testimony{evidence, []string{story}}, nil)
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

// claim compares a deadline with the guaranteed end of the lease. If a call has several commands, a library may count
// from a moment in the middle of the call. A deadline that seems to count from the answer is stored in l.late, and the
// method habit judges it.
func (l *leases) claim(n, i int32, h *hold) {
	op := &l.c.Ops[i]
	life := l.c.rules.Least(op.TTL)
	if life == history.Forever || op.Until == 0 {
		return
	}
	if op.Until == history.Forever {
		late := plus(l.assured(h), l.c.proof(h, history.Forever).Latency())
		if to := h.trusted(); !l.c.Claims.Renews && to > late && i == h.acquire {
			l.fail(history.OverClaim,
				fmt.Sprintf("%s was told no end of %s and believed in it until %s; the lease was sure until %s only",
					who(op.Worker), l.c.name(h), clock(to), clock(l.assured(h))), *op)
		}
		return
	}
	// Servers may or may not round times down, so a holder may rely on the rounding, and on the linger time.
	sure := life + l.c.Bounds.Round + l.c.Bounds.Linger
	switch {
	case op.Until <= op.Call+sure:
	case op.Until > op.Return+sure:
		l.fail(history.OverClaim,
			fmt.Sprintf("%s was told at %s that %s is its own until %s, but the %s asked for at %s "+
				"are sure until %s only",
				who(op.Worker), clock(op.Return), l.c.name(h), clock(op.Until), human.Duration(op.TTL), clock(op.Call),
				clock(op.Call+life)), *op)
	// the deadline counts from the middle of the call, or the client was slow to read its clock
	case 8*(op.Return+sure-op.Until) > op.Return-op.Call:
		l.misses["late-stamp"]++
	default:
		if len(l.late) == 0 {
			l.firstLate = [2]int32{n, i}
		}
		l.late = append(l.late, period{op.Call, op.Return})
		l.quick = min(l.quick, op.Return-op.Call)
	}
}

// habit judges deadlines that count from a moment between call and return. There are two possible reasons: the request
// was sent late, or the library counts from the reply. A library that counts from the reply is late every time, while
// few slow answers have a late request. A delay affects all workers that are about to send, so overlapping answers
// count once.
func (l *leases) habit() {
	late := int64(len(l.late))
	if late == 0 {
		return
	}
	slow := l.slow()
	if often := apart(l.late); often < 3 || 2*often < apart(slow) {
		l.misses["late-stamp"] += late
		return
	}
	h, op := &l.c.holds[l.firstLate[0]], &l.c.Ops[l.firstLate[1]]
	l.fail(history.OverClaim,
		fmt.Sprintf("%s of %s slow answers were counted from the reply: %s was told at %s that %s "+
			"is its own until %s, but the %s asked for at %s are sure until %s only", human.Count(late),
			human.Count(int64(len(slow))),
			who(op.Worker), clock(op.Return), l.c.name(h),
			clock(op.Until), human.Duration(op.TTL), clock(op.Call), clock(op.Call+l.c.rules.Least(op.TTL))), *op)
	l.counts[history.OverClaim] += late - 1
}

// slow lists all answers with a deadline that took at least as long as the fastest answer in l.late.
func (l *leases) slow() (list []period) {
	add := func(n int32) {
		op := &l.c.Ops[n]
		if l.c.rules.Least(op.TTL) != history.Forever && op.Until != 0 && op.Until != history.Forever &&
			op.Return-op.Call >= l.quick {
			list = append(list, period{op.Call, op.Return})
		}
	}
	for _, n := range l.c.byCall {
		if h := &l.c.holds[n]; h.Outcome == history.OK {
			l.c.granting(h, add)
		}
	}
	return list
}

// loss judges a hold that was reported as lost. If the lease was still guaranteed, a server's fault may explain the
// loss; otherwise a foreign release or a premature loss is blamed. If the lease was over, the lock is blamed if it
// claims to renew leases.
func (l *leases) loss(n int32, h *hold, story *account) {
	told := l.denied(h)
	if told < 0 && (h.Lost == history.Forever || !l.c.Claims.Renews || l.released(h, h.Lost)) {
		return
	}
	at, evidence := h.Lost, []history.Op{*l.c.acquire(h)}
	if told >= 0 {
		at, evidence = l.c.Ops[told].Return, append(evidence, l.c.Ops[told])
	}
	over := l.assured(h)
	if told >= 0 && over > at {
		if l.c.forgot(h, at) != nil || l.repeated(told) || l.c.announced(h, &l.c.Ops[told]) {
			l.misses["premature-loss"]++
			return
		}
		if !story.untold && l.c.Sites < 2 || story.robbed(n) {
			return // the story tells why
		}
		if op := story.freed(l.c, h.Call, at); op >= 0 {
			l.freedBy(op, h, at, evidence)
			return
		}
		l.fail(history.PrematureLoss,
			fmt.Sprintf("%s was told at %s that %s is not its own; the lease counted from %s was sure until %s, "+
				"and there was no fault",
				who(h.Worker), clock(at), l.c.name(h), clock(l.c.proof(h, history.Forever).Call), clock(over)),
			evidence...)
		return
	}
	ranOut := told >= 0 && told == h.Release && l.c.Ops[told].Call < over // it ended after the call of its release
	if !l.c.Claims.Renews || h.Crashed <= at || ranOut {
		return
	}
	l.unrenewed(h, at, evidence)
}

// unrenewed judges a lease that ended although the lock renews leases. It asks whether there was enough time for a
// renewal between the answer to the last renewal and the end of the lease.
func (l *leases) unrenewed(h *hold, at time.Duration, evidence []history.Op) {
	proof := l.c.proof(h, at)
	over, renewed := l.promised(proof), "its lease was last renewed at "+clock(proof.Call)
	why := l.c.unrenewable(h, proof, over)
	if l.c.unseen(h) {
		over, renewed = max(over, at), "its renewals are not known"
		why = cmp.Or(why, l.c.unrenewable(h, proof, over), l.c.atWork(proof.Return, over, func(e *history.Effect) bool {
			return e.Hit(history.Links) && (e.Blocks || !e.Known())
		}))
	}
	// the last renewal may have been answered too late to leave time for another one
	if why != nil && why.effect != stoodFor || over-proof.Return < Margin(h.TTL) {
		l.misses["renewal-failure"]++
		return
	}
	story := fmt.Sprintf("%s lived and lost %s at %s; %s, and nothing kept it from being renewed until %s",
		who(h.Worker), l.c.name(h), clock(at), renewed, clock(over))
	l.blame(history.RenewalFailure, testimony{evidence, []string{story}},
		cmp.Or(why, l.unanswered(h, proof.Return, over)))
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
