package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// nap is the time for which a refused worker waits before its next try.
type nap struct {
	period // in which it certainly waited
	key    int32
	op     int32 // index in Ops of the refused try
	heard  bool  // a message ended it
}

// naps lists the naps of all workers, in the order of their ends.
func (l *livenessCheck) naps() (list []nap) {
	tried := make([]int32, l.workers) // by worker: its last try, if it waits for a page; index plus one
	over := func(worker int32, at time.Duration, heard bool) {
		if i := tried[worker] - 1; i >= 0 {
			op := &l.Ops[i]
			asleep := l.narrow(op.Process, period{op.Return, at})
			list = history.Append(&l.scratch, list, nap{asleep, l.joint(op.Key), i, heard})
		}
		tried[worker] = 0
	}
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Worker < 0 {
			continue
		}
		switch op.Kind {
		case history.End:
			over(op.Worker, op.Return, false) // the Call of an End is the time at which the visit began
		case history.Crash:
			over(op.Worker, op.Call, false)
		case history.Acquire:
			over(op.Worker, op.Call, op.Woken == history.Signal)
			if op.Outcome == history.Failed && l.visits {
				tried[op.Worker] = int32(i) + 1
			}
		}
	}
	if l.Partial == "" {
		for w := range tried {
			over(int32(w), l.end, false)
		}
	}
	return list
}

// unheardRun is a series of releases of a page, none of which woke a waiter.
type unheardRun struct {
	first, last int32 // indices in Ops
	sleeper     int32 // index in Ops of the try of a waiter that slept through the last release
	count, long int   // number of releases, and of those after which all waiters slept for longer than the bound
}

// unheardReleases blames a lock that claims that releases wake waiters, if releases were unheard again and again,
// while other workers came and were granted the lock. A release is unheard in two cases. Either all waiters slept for
// longer than the bound after it, or all slept for longer than a moment and no message woke them later. The check
// leaves out times in which a fault or event affects more than holders, and histories without recorded pauses.
func (l *livenessCheck) unheardReleases() {
	if !l.Claims.Wakes || !l.Claims.Alone() || l.Claims.Sets || l.Bounds.Gap == 0 {
		return
	}
	naps := l.naps()
	slices.SortFunc(naps, func(a, b nap) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.from, b.from)) })
	var releases []int32
	for i := range l.Ops {
		if op := &l.Ops[i]; op.Kind == history.Release && op.Outcome == history.OK && op.Value == 0 && op.Key >= 0 {
			releases = history.Append(&l.scratch, releases, int32(i))
		}
	}
	slices.SortFunc(releases, func(a, b int32) int {
		x, y := &l.Ops[a], &l.Ops[b]
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Call, y.Call))
	})
	muted, lost := l.muted(), l.strays()
	var asleep heap // waiters of the page, the one that wakes first is first
	var run unheardRun
	at, key, hearing := 0, int32(-1), 0 // hearing: number of waiters that a message will wake
	slack := l.anySlack()               // the message may also have gone to a waiter that came, or left, just then
	for _, r := range releases {
		op := &l.Ops[r]
		if op.Key != key {
			l.endRun(&run, lost)
			asleep, key, hearing = asleep[:0], op.Key, 0
			for at < len(naps) && naps[at].key < key {
				at++
			}
		}
		for ; at < len(naps) && naps[at].key == key && naps[at].from < op.Call+2*slack; at++ {
			asleep.push(timed{at: naps[at].to, hold: int32(at)})
			hearing += one(naps[at].heard)
		}
		for len(asleep) > 0 && asleep[0].at <= op.Call-2*slack {
			hearing -= one(naps[asleep[0].hold].heard)
			asleep.pop()
		}
		moment, bound := l.awake(op, aMoment), l.awake(op, l.bound)
		switch {
		case len(asleep) == 0 || muted.meets(op.Call, bound): // there was no waiter, or messages may have been lost
		case asleep[0].at <= moment, asleep[0].at <= bound && hearing > 0:
			l.endRun(&run, lost)
		default:
			if run.count++; run.count == 1 {
				run.first = r
			}
			run.long += one(asleep[0].at > bound)
			run.last, run.sleeper = r, naps[asleep[0].hold].op
		}
	}
	l.endRun(&run, lost)
}

// awake returns the time by which a worker that heard of a release has had the time `after` to try again. Short pauses
// of processes do not count.
func (l *livenessCheck) awake(release *history.Op, after time.Duration) time.Duration {
	p := l.wide(release.Process, period{release.Call, plus(release.Return, after)})
	return plus(p.to, p.to-p.from-l.calm(p))
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// endRun ends a series of releases, and blames the lock if it is long.
func (l *livenessCheck) endRun(run *unheardRun, lost []stray) {
	defer func() { *run = unheardRun{} }()
	if run.long <= fewUnheard && run.count <= someUnheard {
		return
	}
	first, last, sleeper := &l.Ops[run.first], &l.Ops[run.last], &l.Ops[run.sleeper]
	more, since := 0, first.Call-plus(l.lease, l.bound+l.anySlack())
	for _, s := range lost {
		if since <= s.at && s.at < last.Return+l.anySlack() && (s.key < 0 || s.key == first.Key) {
			more += unheardEach
		}
	}
	if run.long <= fewUnheard+more && run.count <= someUnheard+more {
		return
	}
	l.accuse(history.LostWakeup, []history.Op{*sleeper, *first, *last}, fmt.Sprintf(
		"%s: it was given back %s times from %s to %s while others waited for it, %s among them since it was refused "+
			"at %s, and no message woke any of these",
		l.called(first.Key), human.Count(int64(run.count)), clock(first.Call), clock(last.Return), who(sleeper.Worker),
		clock(sleeper.Return)))
}

// muted lists the times in which a message to a waiter may be lost because a fault or event affects more than holders.
// After it, listeners need time to subscribe again: as long as the fault lasted, or a recovery if that is longer, and
// then a lease and the bound.
func (l *livenessCheck) muted() spans {
	var list []period
	for i := range l.windows {
		w := &l.windows[i]
		others := slices.ContainsFunc(w.effect.Hits, func(p history.Party) bool { return p != history.Holders })
		if !l.hitch(w) && (others || !w.effect.Known()) {
			list = append(list, period{w.from - l.anySlack(),
				plus(plus(w.to, max(w.to-w.from, l.recovery())), plus(l.lease, l.bound+l.anySlack()))})
		}
	}
	return newSpans(list)
}

// stray is a moment at which a message of a page may have gone to a worker that cannot hear it; key -1 = of any page.
type stray struct {
	at  time.Duration
	key int32
}

// strays lists the moments at which a message may have gone to a worker that cannot hear it. A call had no answer or
// was cancelled, or a waiter died or gave up. A worker that dies with the lock listens for nothing.
func (l *livenessCheck) strays() (list []stray) {
	for i := range l.Ops {
		op := &l.Ops[i]
		switch op.Kind {
		case history.Acquire, history.Extend, history.Release:
			if op.Outcome == history.Unknown || op.Reason == history.Canceled {
				list = append(list, stray{op.Return, op.Key})
			}
		}
	}
	if l.visits {
		l.Case.waits(func(w *wait) {
			if w.hold < 0 {
				list = append(list, stray{w.stop, w.key})
			}
		})
	}
	return list
}
