package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// stuck blames periods longer than the bound in which a worker tried to get the lock, and no worker held it. It returns
// those that it blamed.
func (l *livenessCheck) stuck(left []stretch) (blamed []stretch) {
	refusals := l.refusals(left)
	last := make([]time.Duration, l.keys) // by page: the last grant of its lock
	for i := range l.holds {
		if h := &l.holds[i]; h.Key >= 0 && h.Outcome == history.OK {
			last[l.joint(h.Key)] = max(last[l.joint(h.Key)], h.Return)
		}
	}
	var quiet []stretch
	for i, s := range left {
		if refusals[i] < 0 {
			if l.waited(s) {
				quiet = append(quiet, s)
			}
			continue
		}
		cause := history.Stuck
		if s.from >= last[s.key] && s.to-s.from > 2*l.lease {
			cause = history.Deadlock
		}
		evidence := []history.Op{l.Ops[refusals[i]]}
		if tangled := l.tangled(s.period); len(tangled) > 1 {
			if cause, evidence = history.Crossing, tangled; !l.Claims.Crosses {
				l.misses["callers who waited for each other"]++
				continue
			}
		}
		story := []string{fmt.Sprintf("%s: %s from %s to %s, and %s; at most %s are explained",
			l.called(s.key), l.lacked(), clock(s.from), clock(s.to), attempt(&l.Ops[refusals[i]]),
			human.Duration(l.bound))}
		if left := l.keyIn(s); cause != history.Crossing && left != nil {
			evidence = append(evidence, *left)
			story = append(story, fmt.Sprintf("a key of the lock was still seen on node %d at %s, with token %s",
				left.Value, clock(left.Call), short(left.Token)))
		}
		l.accuse(cause, evidence, story...)
		blamed = append(blamed, s)
	}
	polled, silences := l.polls(quiet), l.silences(quiet)
	for i, sleeper := range l.sleepers(quiet) {
		switch silence := silences[i]; {
		case sleeper >= 0:
			l.unwoken(quiet[i], sleeper, last[quiet[i].key], polled)
			blamed = append(blamed, quiet[i])
		case silence != nil:
			l.blame(history.Stuck, testimony{}, silence)
		default:
			l.misses["idle and not asked for"]++
		}
	}
	return blamed
}

// silences returns, for each period, a window if a worker waited in it for longer than the bound while no worker of its
// process did anything, and pauses are not recorded; otherwise nil. The process may have been paused, so it is unknown
// whether the lock served nobody. The periods are sorted by page.
func (l *livenessCheck) silences(list []stretch) []*window {
	found := make([]*window, len(list))
	if l.Bounds.Gap > 0 || len(list) == 0 {
		return found
	}
	l.Case.waits(func(w *wait) {
		if w.key < 0 || !l.served(w.permits) {
			return
		}
		key := l.joint(w.key)
		for n := after(list, key, w.start); n < len(list) && list[n].key == key && list[n].from < w.stop; n++ {
			p := period{max(w.start, list[n].from), min(w.stop, list[n].to)}
			if found[n] == nil && l.stood(w.process, p.from, p.to) > l.bound {
				found[n] = &window{period: p, name: fmt.Sprintf(
					"no call or answer of process %d, and pauses are not recorded", w.process)}
			}
		}
	})
	return found
}

// lacked says that the lock was free. A lock that claims no expiry may keep the hold of a dead worker.
func (l *livenessCheck) lacked() string {
	switch {
	case l.Claims.Permits > 0:
		return fmt.Sprintf("at least %d of %d permits were free", l.wanted, l.Claims.Permits)
	case l.Claims.Expires:
		return "no worker can have held the lock"
	}
	return "no worker relied on the lock"
}

// attempt says how a try fared that asked for a free lock.
func attempt(op *history.Op) string {
	if op.Outcome == history.OK {
		return fmt.Sprintf("%s asked for it at %s and was granted it only at %s", who(op.Worker), clock(op.Call),
			clock(op.Return))
	}
	return fmt.Sprintf("%s asked for it in vain at %s", who(op.Worker), clock(op.Call))
}

const removeTheKey = "Let a release, and the end of a lease, remove the key of the lock: it was there when no worker " +
	"had the lock any more. See locks/catalogue/lease.go."

const dropTheDead = "Drop a waiter that has not asked again in time from the queue, in the script that grants the " +
	"lock: one that died there keeps all others out. See locks/catalogue/fair.go."

// adviseWaiter chooses the advice for a waiter that tried in vain: about the queue, or about a key that was seen. If
// neither applies and the waiter tried again and again, the history does not show the reason, so there is no advice.
// If a single call lasted all the time, the waiter slept in the lock, and the advice is that of the cause.
func (l *livenessCheck) adviseWaiter(v *Verdict, evidence []history.Op) {
	seen := slices.ContainsFunc(evidence, func(op history.Op) bool { return op.Kind == history.Sight })
	switch {
	case v.Cause != history.Stuck && v.Cause != history.Deadlock:
	case l.Claims.Ordered && !seen:
		v.advise(dropTheDead)
	case v.Cause == history.Deadlock:
	case seen:
		v.advise(removeTheKey)
	case evidence[0].Return-evidence[0].Call <= l.bound:
		v.advise(notShown)
	}
}

// keyIn returns an operation that saw the lock's key in a period in which no worker can have held the lock; nil if
// none exists.
func (l *livenessCheck) keyIn(s stretch) *history.Op {
	if l.Claims.Permits > 0 {
		return nil // the key is there while permits are free
	}
	for key := range l.keys {
		if l.joint(int32(key)) != s.key {
			continue
		}
		for _, op := range l.sightsOf(int32(key)) {
			if op.Call >= s.from && op.Return <= s.to {
				return op
			}
		}
	}
	return nil
}

// unwoken blames a period in which the lock was free, while a worker waited for it all the time without a try.
func (l *livenessCheck) unwoken(s stretch, sleeper int32, last time.Duration, polled bool) {
	cause, op, but := history.LostWakeup, &l.Ops[sleeper], "was not woken"
	if polled {
		cause, but = history.Stuck, "did not ask again"
	}
	if s.from >= last && s.to-s.from > 2*l.lease {
		cause = history.Deadlock
	}
	l.accuse(cause, []history.Op{*op}, fmt.Sprintf(
		"%s: %s from %s to %s; %s, refused at %s, waited for it all the time and %s",
		l.called(s.key), l.lacked(), clock(s.from), clock(s.to), who(op.Worker), clock(op.Return), but))
}

// sleepers returns, for each period, the index in Ops of a refused try that its visit did not repeat for longer than
// the bound; -1 if none exists. The periods are sorted by page. If a message may have been lost, the bound is longer
// by a lease.
func (l *livenessCheck) sleepers(list []stretch) []int32 {
	found := slices.Repeat([]int32{-1}, len(list))
	if len(list) == 0 {
		return nil
	}
	deaf := l.deaf()
	for _, p := range l.naps() {
		if !l.served(l.Ops[p.op].Permits) {
			continue
		}
		call := l.Ops[p.op].Call - l.errorOf(l.Ops[p.op].Process)
		for n := after(list, p.key, p.from); n < len(list) && list[n].key == p.key && list[n].from < p.to; n++ {
			asleep := l.ran(l.Ops[p.op].Process, period{max(p.from, list[n].from), min(p.to, list[n].to)})
			if deaf.meets(call, list[n].from+l.bound) {
				asleep -= l.lease
			}
			if asleep > l.bound {
				found[n] = p.op
			}
		}
	}
	return found
}

// deaf lists the times in which a message to a waiter may be lost, so that the waiter sleeps until a lease ends. These
// are the times that the method muted returns, and the times after a worker died, had no answer, was cancelled or gave
// up. If the lock does not claim messages, and none ever woke a worker, deaf returns all the time: waiters may poll as
// rarely as they like.
func (l *livenessCheck) deaf() spans {
	if !l.messages() {
		return spans{{0, history.Forever}}
	}
	list := l.muted()
	for _, s := range l.strays() {
		slack := l.anySlack()
		list = append(list, period{s.at - slack, plus(s.at, plus(l.lease, l.bound+slack))})
	}
	return newSpans(list)
}

// messages reports whether waiters of the lock wait for messages. Otherwise they only poll.
func (l *livenessCheck) messages() bool {
	return l.Claims.Wakes || slices.ContainsFunc(l.Ops, func(op history.Op) bool { return op.Woken == history.Signal })
}

// polls reports whether waiters only ask again and again: no message wakes them, and a refused worker did ask again. It
// returns false if there is no period for which that matters.
func (l *livenessCheck) polls(list []stretch) bool {
	if len(list) == 0 || l.messages() {
		return false
	}
	refused := make([]int32, l.workers) // by worker: the page of its last call if that was refused, plus one
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Worker < 0 || op.Kind == history.Crash {
			continue
		}
		if op.Kind == history.Acquire && refused[op.Worker] == op.Key+1 {
			return true
		}
		if refused[op.Worker] = 0; op.Kind == history.Acquire && op.Outcome == history.Failed {
			refused[op.Worker] = op.Key + 1
		}
	}
	return false
}

// after returns the index of the first period of a page that ends after a moment. The list is sorted by page and time.
func after(list []stretch, key int32, at time.Duration) int {
	n, _ := slices.BinarySearchFunc(list, stretch{period{to: at}, key}, func(s, t stretch) int {
		return cmp.Or(cmp.Compare(s.key, t.key), cmp.Compare(s.to, t.to+1))
	})
	return n
}

// within is the index of the period of a page that contains a try; -1 if none exists. The list is sorted by page.
func (l *livenessCheck) within(list []stretch, op *history.Op) int {
	key, w := l.joint(op.Key), l.wide(op.Process, period{op.Call, op.Return})
	n := after(list, key, w.to-1)
	if n < len(list) && list[n].key == key && list[n].from <= w.from && w.to <= list[n].to {
		return n
	}
	return -1
}

// cut removes from a period the times that a fault may explain. It returns the parts that are still too long.
func (l *livenessCheck) cut(s stretch) (rest []stretch) {
	for _, d := range l.disturbed.of(s.period) {
		l.deadFault = max(l.deadFault, min(s.to, d.to)-max(s.from, d.from))
	}
	for _, p := range l.disturbed.without(s.period) {
		if l.dies(p) {
			rest = append(rest, stretch{p, s.key})
		}
	}
	return rest
}

// unheard reports whether a try ended before the server heard of it, because no connection could be made. It returns
// false for a lock without sessions, which may have had other connections in a pool.
func (l *livenessCheck) unheard(op *history.Op) bool {
	return l.Session && op.Outcome == history.Failed && op.Reason == history.Unreachable
}

// refusals returns, for each period, the index in Ops of a try that proves that the lock was idle; -1 if none exists.
// There are two kinds of proof. First, a try was called at least half a bound after the period began, and it failed
// before the next holder requested the lock. Second, a try had no answer for a whole bound. If no visit lasted all the
// time, more tries must have been refused than collisions between tries explain.
func (l *livenessCheck) refusals(list []stretch) []int32 {
	proofs := slices.Repeat([]int32{-1}, len(list))
	if len(list) == 0 {
		return proofs
	}
	slices.SortFunc(list, byKeyAndTime)
	asked, needed := l.asked(list), make([]int, len(list))
	for i, s := range list {
		if needed[i] = 1; !l.waited(s) {
			needed[i] += collisions
		}
	}
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Kind != history.Acquire || op.Worker < 0 || !l.served(op.Permits) {
			continue
		}
		w, key := l.wide(op.Process, period{op.Call, op.Return}), l.joint(op.Key)
		for at := after(list, key, w.from); at < len(list) && list[at].key == key && list[at].from <= w.to; at++ {
			late := list[at].from + l.bound/2
			refused := op.Outcome == history.Failed &&
				(op.Reason == history.Busy || op.Reason == history.Quorum || op.Reason == history.Other) || l.vain(op)
			if refused && w.from >= list[at].from && w.to <= asked[at] {
				needed[at]--
			}
			again := refused && w.from >= late && w.to <= asked[at] && needed[at] <= 0
			ends := op.Return
			if h := l.hold(op.ID); h != nil {
				ends = min(ends, h.Crashed) // a dead worker requests nothing
			}
			call := l.narrow(op.Process, period{op.Call, ends})
			idle := period{list[at].from, min(list[at].to, call.to)}
			hung := call.from <= late && l.ran(op.Process, idle)+call.to-idle.to >= l.bound && !l.unheard(op) &&
				!l.calledOff(op)
			if proofs[at] < 0 && (again || hung) {
				proofs[at] = int32(i)
			}
		}
	}
	return proofs
}

// asked returns, for each period, when the next holder requested the lock: the call of the first try that was
// granted in the period or at its end. From that call on, the lock may have belonged to this try. The periods are
// sorted by page.
func (l *livenessCheck) asked(list []stretch) []time.Duration {
	times := make([]time.Duration, len(list))
	for i := range list {
		times[i] = list[i].to
	}
	for i := range l.holds {
		h := &l.holds[i]
		if h.Key < 0 || h.Outcome != history.OK {
			continue
		}
		w, key := l.wide(h.Process, period{h.Call, h.Return}), l.joint(h.Key)
		for at := after(list, key, w.from); at < len(list) && list[at].key == key && list[at].from < w.to; at++ {
			times[at] = min(times[at], w.from)
		}
	}
	return times
}
