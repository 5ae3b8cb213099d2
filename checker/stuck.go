package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// stuck blames the stretches in which nobody had the lock for too long although somebody tried for it.
func (l *livenessCheck) stuck(left []stretch) {
	refusals := l.refusals(left)
	last := make([]time.Duration, l.keys) // when a page's lock was granted for the last time
	for i := range l.holds {
		if h := &l.holds[i]; h.Key >= 0 && h.Outcome == history.OK {
			last[h.Key] = max(last[h.Key], h.Return)
		}
	}
	for i, s := range left {
		if refusals[i] < 0 {
			if sleeper := l.asleep(s); sleeper >= 0 {
				l.unwoken(s, sleeper, last[s.key])
			} else {
				l.misses["idle and not asked for"]++
			}
			continue
		}
		cause := "stuck"
		if s.from >= last[s.key] && s.to-s.from > 2*l.longest(l.ttl()) {
			cause = "deadlock"
		}
		l.blame(cause, []history.Op{l.Ops[refusals[i]]}, fmt.Sprintf(
			"page %d: nobody can have held the lock from %s to %s, and %s asked for it in vain at %s; at most %s are explained",
			s.key, clock(s.from), clock(s.to), who(l.Ops[refusals[i]].Worker), clock(l.Ops[refusals[i]].Call), l.bound))
	}
}

// unwoken blames a stretch in which the lock was nobody's, and a worker waited for it all the time without a try.
func (l *livenessCheck) unwoken(s stretch, sleeper int32, last time.Duration) {
	cause, op := "lost-wakeup", &l.Ops[sleeper]
	if s.from >= last && s.to-s.from > 2*l.longest(l.ttl()) {
		cause = "deadlock"
	}
	l.blame(cause, []history.Op{*op}, fmt.Sprintf(
		"page %d: nobody can have held the lock from %s to %s; %s, refused at %s, waited for it all the time and was not woken",
		s.key, clock(s.from), clock(s.to), who(op.Worker), clock(op.Return)))
}

// asleep finds a try that was refused and that its visit repeated only when a stretch had lasted for longer than the bound
// and a lease: who waits for a message may sleep until a lease ends. It is -1 if there is none. A worker that waits has not
// stopped to ask; but where nobody recorded when the machine stood still, the longest silence of all may be that.
func (l *livenessCheck) asleep(s stretch) int32 {
	least := l.bound + l.longest(l.ttl()) + l.silence(s)
	least += s.to - s.from - l.lasted(s.period)
	if s.to-s.from <= least {
		return -1
	}
	tried := make([]int32, l.workers) // by worker: its last try, if it waits for the page; plus one
	found := int32(-1)
	over := func(worker int32, at time.Duration) {
		if i := tried[worker] - 1; i >= 0 && min(at, s.to)-max(l.Ops[i].Return, s.from) > least {
			found = i
		}
		tried[worker] = 0
	}
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Worker < 0 {
			continue
		}
		if op.Kind != history.Acquire && op.Kind != history.End && op.Kind != history.Crash {
			continue
		}
		if op.Kind == history.End {
			over(op.Worker, op.Return) // its call is when it began
		} else {
			over(op.Worker, op.Call)
		}
		if op.Kind == history.Acquire && op.Key == s.key && op.Outcome == history.Failed && l.visits {
			tried[op.Worker] = int32(i) + 1
		}
	}
	if l.Partial == "" {
		for w := range tried {
			over(int32(w), s.to)
		}
	}
	return found
}

// silence is the longest time in a stretch in which no worker was called or answered, where gaps are not recorded.
func (l *livenessCheck) silence(s stretch) (longest time.Duration) {
	if l.Bounds.Gap > 0 {
		return 0
	}
	times := []time.Duration{s.from, s.to}
	for i := range l.Ops {
		if op := &l.Ops[i]; op.Worker >= 0 {
			times = append(times, min(max(op.Call, s.from), s.to), min(max(op.Return, s.from), s.to))
		}
	}
	slices.Sort(times)
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i]-times[i-1])
	}
	return longest
}

// cut takes out of a stretch what a fault may explain, and returns the parts that are still too long.
func (l *livenessCheck) cut(s stretch) []stretch {
	rest := []stretch{s}
	for _, d := range l.disturbed {
		var next []stretch
		for _, r := range rest {
			if !d.meets(r.from, r.to) {
				next = append(next, r)
				continue
			}
			l.deadFault = max(l.deadFault, min(r.to, d.to)-max(r.from, d.from))
			if d.from > r.from {
				next = append(next, stretch{period{r.from, d.from}, r.key})
			}
			if d.to < r.to {
				next = append(next, stretch{period{d.to, r.to}, r.key})
			}
		}
		rest = next
	}
	return slices.DeleteFunc(rest, func(r stretch) bool { return l.lasted(r.period) <= l.bound })
}

// refusals finds, for each stretch, a try that proves it, or -1: one that was called half a bound after its start or
// later and was refused, or one that had no answer for a whole bound.
func (l *livenessCheck) refusals(list []stretch) []int32 {
	proofs := make([]int32, len(list))
	for i := range proofs {
		proofs[i] = -1
	}
	if len(list) == 0 {
		return proofs
	}
	slices.SortFunc(list, byKeyAndTime)
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Kind != history.Acquire || op.Worker < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, op.Key, func(s stretch, key int32) int { return int(s.key) - int(key) })
		for ; at < len(list) && list[at].key == op.Key; at++ {
			late := list[at].from + l.bound/2
			refused := op.Outcome == history.Failed && (op.Reason == history.Busy || op.Reason == history.Quorum)
			again := refused && op.Call >= late && op.Return <= list[at].to
			hung := op.Call <= late && op.Return >= list[at].from+l.bound
			if proofs[at] < 0 && (again || hung) {
				proofs[at] = int32(i)
			}
		}
	}
	return proofs
}
