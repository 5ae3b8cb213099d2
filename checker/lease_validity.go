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
		proof := l.c.proof(h, history.Forever)
		l.fail(history.PrematureLoss,
			fmt.Sprintf("%s was told at %s that %s is not its own; the lease counted from %s was sure until %s, and %s",
				who(h.Worker), clock(at), l.c.name(h), clock(proof.Call), clock(over),
				l.c.harmless(proof.Call, at)), evidence...)
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
