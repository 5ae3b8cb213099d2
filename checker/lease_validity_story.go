package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
)

// freedBy blames the release op, which belongs to another hold, and ended the victim's hold before its lease was over.
func (l *leases) freedBy(op int32, victim *hold, heard time.Duration, evidence []history.Op) {
	c := l.c
	l.fail(history.ForeignRelease, fmt.Sprintf("%s was told at %s that %s is not its own, before its lease was over "+
		"at %s: %s had released it (%s)", who(victim.Worker), clock(heard), c.name(victim), clock(l.assured(victim)),
		who(c.Ops[op].Worker), spanned(&c.Ops[op])), append(evidence, c.Ops[op])...)
}

// told blames a lease that is wrong in the story of its page: it ended early, lasted too long, was not extended, or
// was revived.
func (l *leases) told(k *slip) {
	c, evidence, text := l.c, []history.Op(nil), ""
	if k.deviates(history.ForeignRelease) {
		l.robbed(k)
		return
	} else if k.hold < 0 {
		return
	}
	switch h := &c.holds[k.hold]; {
	case k.deviates(history.PrematureLoss) && c.Sites < 2: // with several sites, loss judges this
		l.endedEarly(k, h)
		return
	case k.deviates(history.SilentReacquire) && k.against >= 0:
		answer := map[bool]string{true: "with success", false: "without an answer"}[c.Ops[k.op].Outcome == history.OK]
		text = fmt.Sprintf("%s extended %s at %s %s, after it was over: that took the lock away from %s",
			who(h.Worker), c.name(h), clock(c.Ops[k.op].Call), answer, who(c.holds[k.against].Worker))
	case k.deviates(history.SilentReacquire):
		by := c.Ops[k.op].Call
		if k.Unanswered { // only a key shows that it may have had an effect
			by = history.Forever
		}
		if shown, story := l.outlived(h, l.before(h, k.op), by); shown != nil {
			l.fail(history.TTLTooLong, fmt.Sprintf("the lease of %s was over by %s, but %s: it lasted longer than was "+
				"asked for", c.name(h), clock(l.before(h, k.op)), story), *c.acquire(h), *shown, c.Ops[k.op])
			return
		}
		text = fmt.Sprintf("%s extended %s at %s with success, but it was over: no worker had it to give",
			who(h.Worker), c.name(h), clock(c.Ops[k.op].Call))
	case k.deviates(history.FalseExtension) && !c.gaveBack(k):
		text = fmt.Sprintf("%s was told at %s that it has %s for longer, but the lease was not made longer",
			who(h.Worker), clock(c.Ops[k.op].Return), c.name(h))
	case k.deviates(history.TTLTooLong):
		text = l.tooLong(k, h)
	default:
		return
	}
	if k.op >= 0 {
		evidence = append(evidence, c.Ops[k.op])
	}
	if k.against >= 0 {
		evidence = append([]history.Op{*c.acquire(&c.holds[k.against])}, evidence...)
	}
	l.fail(k.Deviation.Name, text, append([]history.Op{*c.acquire(&c.holds[k.hold])}, evidence...)...)
}

// tooLong says what shows that a lease lasted longer than was asked for.
func (l *leases) tooLong(k *slip, h *hold) string {
	c, over := l.c, l.latest(h)
	if k.op < 0 || k.At > over || c.Ops[k.op].Worker >= 0 {
		return fmt.Sprintf("%s still had %s at %s, after its lease was over: it lasted longer than was asked for",
			who(h.Worker), c.name(h), clock(k.At))
	}
	expiry := "to expire at " + clock(c.Ops[k.op].Until)
	if c.Ops[k.op].Until == history.Forever {
		expiry = "without an expiry"
	}
	return fmt.Sprintf("the key of %s was seen at %s, %s, but its lease is over by %s", c.name(h),
		clock(c.Ops[k.op].Call), expiry, clock(over))
}

// endedEarly blames who ended a lease too early, as far as an answer shows it; otherwise it blames the lock.
func (l *leases) endedEarly(k *slip, h *hold) {
	c, shown, evidence := l.c, k.At, []history.Op{*l.c.acquire(h)}
	if n := l.denied(h); n >= 0 {
		heard := &c.Ops[n]
		evidence, shown = append(evidence, *heard), max(shown, heard.Return)
		if op := c.tell(c.holdsOf(h.Key)).freed(c, h.Call, heard.Return); op >= 0 {
			l.freedBy(op, h, heard.Return, evidence)
			return
		}
		e := c.ended(h, history.Forever, 0)
		if e != nil && endCause(e) != "" && endCause(e) != history.DoubleGrant {
			text := "%s was told at %s that %s is not its own, before its lease was over at %s: %s"
			l.fail(endCause(e), fmt.Sprintf(text, who(h.Worker), clock(heard.Return), c.name(h), clock(l.assured(h)),
				c.endedText(h, e)), evidence...)
			return
		}
	}
	proof := c.proof(h, history.Forever)
	l.fail(history.PrematureLoss, fmt.Sprintf("%s had %s no more at %s; the lease counted from %s was sure until %s, "+
		"and %s", who(h.Worker), c.name(h), clock(k.At), clock(proof.Call), clock(l.assured(h)),
		c.harmless(proof.Call, shown)), evidence...)
}

// harmless says that no fault between two moments can have ended a lease.
func (c *Case) harmless(from, to time.Duration) string {
	w := c.atWork(from, to, func(e *history.Effect) bool { return !e.Hit(history.Nobody) })
	if w == nil {
		return "there was no fault"
	}
	return fmt.Sprintf("%s ends no lease", w.name)
}

// robbed blames a release that freed the lock of another worker, the victim. The victim must have learned of the loss
// before its lease was over.
func (l *leases) robbed(k *slip) {
	if k.against < 0 {
		return
	}
	c, victim := l.c, &l.c.holds[k.against]
	n := l.denied(victim)
	if n < 0 || c.Ops[n].Call > l.assured(victim) {
		return
	}
	l.freedBy(k.op, victim, c.Ops[n].Return, []history.Op{*c.acquire(victim), c.Ops[n]})
}

// denied returns the index of the first call of a hold that was answered "not yours" although the hold cannot have
// been released yet; -1 if none exists.
func (l *leases) denied(h *hold) int32 {
	for _, n := range append(l.c.extends(h), h.Release) {
		if n < 0 {
			continue
		}
		if op := &l.c.Ops[n]; op.Outcome == history.Failed && op.Reason == history.Lost && !l.released(h, op.Return) {
			return n
		}
	}
	return -1
}

// before returns the latest end of a hold's lease, according to the answers to its calls before the given extension.
func (l *leases) before(h *hold, extension int32) time.Duration {
	last := plus(h.Return, l.c.rules.Most(h.TTL))
	for _, n := range l.c.extends(h) {
		if op := &l.c.Ops[n]; n != extension && op.Outcome != history.Failed && op.Call < l.c.Ops[extension].Call {
			last = max(last, plus(op.Return, l.c.rules.Most(op.TTL)))
		}
	}
	return last
}
