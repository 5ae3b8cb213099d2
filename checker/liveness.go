package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var liveness = Checker{
	Name: history.Liveness,
	Doc: "the lock is not idle for long while a worker waits, no writer starves if the lock claims it, " +
		"and no key outlives its holder and its lease",
	Causes: liveCauses,
	// a lock for scheduled jobs never grants a tick that is over
	Applies: func(h *history.Header) bool { return !h.Claims.Once },
	Check:   judgeLiveness,
}

// liveCauses lists the causes of failed verdicts of this checker, the worst first.
var liveCauses = append(slices.Clip(waits), history.PartKept, history.Phantom, history.Leak, history.Leftover,
	history.TTLTooLong)

// judgeLiveness calls a lock stuck only if it was idle after the last moment at which any server can have kept it for a
// holder. So expiries and unknown outcomes need no tolerance of their own.
func judgeLiveness(c *Case) Verdict {
	v, _ := weighLiveness(c)
	return v
}

// weighLiveness returns the verdict, and also the check itself, which has the times behind the verdict.
func weighLiveness(c *Case) (Verdict, *livenessCheck) {
	l := &livenessCheck{Case: c, misses: map[string]int64{}, end: c.recorded()}
	call, try := l.slowest()
	l.bound = c.Retry*3/2 + call + collisions*try + l.patience()
	for _, p := range l.eventful.without(period{0, l.end}) {
		if lasted := l.calm(p); lasted > l.bound+2*l.anySlack() {
			l.judged += lasted
		}
	}
	sizes, waits := l.wants(), int64(0)
	if len(sizes) > 1 {
		l.wanted = sizes[0]
		if !l.everFree() {
			sizes = sizes[:1] // what is not free for the smallest request is not free for a larger one
		}
		waits = l.waits
	}
	for i, n := range sizes {
		l.wanted = n
		l.serve(i == 0)
	}
	if waits > 0 {
		l.waits = waits // of all sizes
	}
	l.unheardReleases()
	l.starved()
	l.writersBarred()
	scanned := l.leaks()
	return l.verdict(scanned), l
}

// serve blames the lock if it was free and did not serve waiting workers. For a semaphore, it looks at the requests for
// the wanted number of permits. If first is true, it also counts the dead times.
func (l *livenessCheck) serve(first bool) {
	waiting := l.waiting()
	l.alone = waiting
	l.idle(waiting, l.believed, func(s stretch) {
		if first {
			l.dead = max(l.dead, s.to-s.from)
			l.deadAll += s.to - s.from
		}
	})
	var left []stretch
	others := func(known []stretch) func(s stretch) {
		return func(s stretch) {
			if l.dies(s.period) && !slices.ContainsFunc(known, func(o stretch) bool {
				return o.key == s.key && o.meets(s.from, s.to)
			}) {
				left = append(left, l.cut(s)...)
			}
		}
	}
	l.idle(waiting, l.kept, others(nil))
	l.idle(l.comeAgain(waiting), l.kept, others(slices.Clone(left)))
	blamed := l.stuck(left)
	if l.Claims.Permits > 0 { // a permit that is kept for no worker looks like one that is being released
		left = nil
		l.idle(waiting, l.believed, others(blamed))
		l.withheld(left)
	}
}

// slowest returns two latencies: of the longest undisturbed call that had a connection and did not wait for a lock,
// and of the longest try that found no quorum. If leases expire, a lock call counts as one lease at most. A lock whose
// tries take longer than a lease can never be granted, and that is no excuse.
func (l *livenessCheck) slowest() (call, try time.Duration) {
	lease := history.Forever
	if l.lease > 0 && l.Claims.Expires {
		lease = l.lease
	}
	for i := range l.Ops {
		op, most, bound := &l.Ops[i], &call, lease
		switch op.Kind {
		case history.Load, history.Store:
			bound = history.Forever
		case history.Release, history.Extend:
		case history.Acquire:
			switch {
			case op.Outcome == history.Failed && op.Reason == history.Quorum:
				most = &try
			case !l.unheard(op):
				continue
			}
		default:
			continue
		}
		if t := op.Latency(); t != history.Forever && min(t, bound) > *most && !l.disturbed.meets(op.Call, op.Return) {
			*most = min(t, bound)
		}
	}
	return call, try
}

// shortage says why there was no time to judge.
func (l *livenessCheck) shortage() string {
	unplanned := slices.ContainsFunc(l.windows, func(w window) bool { return !w.fault })
	switch {
	case unplanned:
		return "unplanned events, such as paused processes, left"
	case len(l.disturbed) > 0:
		return "faults left"
	}
	return "the run was too short: there was"
}

func (l *livenessCheck) verdict(scanned bool) Verdict {
	v := Verdict{Exposed: l.waits, Misses: l.misses}
	worst := l.into(&v, liveCauses)
	dead := fmt.Sprintf("longest dead time %s, %s in all", human.Duration(l.dead), human.Duration(l.deadAll))
	if l.deadFault > 0 {
		dead += fmt.Sprintf(", of which a fault explains up to %s at a time", human.Duration(l.deadFault))
		l.misses["dead around a fault"]++
	}
	if !scanned {
		dead += "; no key was found left behind"
	}
	switch {
	case v.Status == Fail:
		l.adviseWaiter(&v, worst.evidence)
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s: %s; %s", v.Cause, v.Story[0], dead)
	case l.excused > 0:
		v.Summary = l.excuseText("times in which the lock was free for a waiting worker") + "; " + dead
	case l.waits == 0:
		v.Summary, v.scant = "no worker waited", true
	case l.judged == 0:
		v.scant = true
		v.Summary = fmt.Sprintf("%s no time of more than %s in which a dead lock could be found; %s", l.shortage(),
			human.Duration(l.bound), dead)
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s, in %s that were judged%s", dead, human.Duration(l.judged), l.ofKilled())
	}
	return v
}

// ofKilled says for how long the lock may have belonged to killed workers whose last records were not sent.
func (l *livenessCheck) ofKilled() string {
	sum := time.Duration(0)
	for _, p := range newSpans(l.unsent()) {
		sum += max(min(p.to, l.end)-p.from, 0)
	}
	if sum = min(sum, l.judged); sum == 0 {
		return ""
	}
	return fmt.Sprintf(", of which up to %s may belong to killed workers whose last records are missing",
		human.Duration(sum))
}
