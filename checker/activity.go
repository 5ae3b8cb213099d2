package checker

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Activity says whether the run tested the lock enough for the other verdicts.
var Activity = Checker{
	Name: "activity",
	Doc: "enough was tried: hand-offs under contention, faults that coincided with holders or " +
		"waiters, few unknown outcomes",
	Check: judgeActivity,
}

// A hand-off goes from the release of one worker to the grant of another. A run with fewer than enoughHandOffs
// contended hand-offs does not test the lock. If the share of unknown outcomes is larger than tooManyUnknowns, these
// can hide any violation.
const (
	enoughHandOffs  = 20
	tooManyUnknowns = 0.1
)

// judgeActivity never fails a run. It says whether enough happened for the other verdicts to mean something.
func judgeActivity(c *Case) Verdict {
	a := c.effort()
	met := c.coincided()
	v := Verdict{Exposed: a.holds, HandOffs: a.handOffs, Misses: map[string]int64{}, Extent: c.extent(met)}
	if a.unknown > 0 {
		v.Misses["unknown"] = a.unknown
	}
	doubts := append(c.failures(), c.idleFaults(met)...)
	if c.Partial != "" && !c.Allowed {
		doubts = append(doubts, "the history is partial: "+c.Partial)
	}
	if a.handOffs < enoughHandOffs {
		doubts = append(doubts, fmt.Sprintf("%s contended hand-offs between workers, at least %d are needed",
			human.Count(a.handOffs), enoughHandOffs))
	}
	if a.known > 0 && float64(a.unknown) > tooManyUnknowns*float64(a.known+a.unknown) || a.known == 0 && a.unknown > 0 {
		doubts = append(doubts, fmt.Sprintf("%s of %s outcomes are unknown", human.Count(a.unknown),
			human.Count(a.known+a.unknown)))
	}
	if len(doubts) > 0 {
		if w := c.stoodLongest(); w != nil && w.to-w.from > Margin(c.lease) {
			doubts = append(doubts, w.String())
		}
		v.Summary = strings.Join(doubts, "; ")
		return v
	}
	v.Status = Pass
	missing := ""
	if c.Partial != "" {
		missing = "; nothing is known of what is missing, as was allowed: " + c.Partial
	}
	coincided := len(slices.DeleteFunc(slices.Clone(met), func(met bool) bool { return !met }))
	v.Summary = fmt.Sprintf("%s holds, %s contended hand-offs, %s that coincided with a holder or waiter; %s%s",
		human.Count(a.holds), human.Count(a.handOffs), human.Quantity(coincided, "fault"), atMost(a.holds), missing)
	return v
}

// atMost says in words how often a violation may occur, if n occasions passed without one (rule of three).
func atMost(n int64) string {
	if n <= 3 {
		return "too few to bound their rate"
	}
	return fmt.Sprintf("at most 1 in %s, with 95 %% confidence", human.Count(n/3))
}

type effort struct{ holds, handOffs, known, unknown int64 }

// effort counts holds, hand-offs and outcomes. A hand-off is contended in two cases: the new holder was already
// waiting during the earlier hold, or a worker was refused between the two grants.
func (c *Case) effort() (e effort) {
	type last struct {
		hold    int32 // index, plus one; 0 = none
		refused bool
	}
	keys := make([]last, c.keys)
	ticks := make([]bool, c.keys)             // by key: it was tried before; used if the lock grants each key only once
	since := make([]time.Duration, c.workers) // by worker: first try of its current wait; 0 = it does not wait
	for i := range c.Ops {
		op := &c.Ops[i]
		switch op.Kind {
		// Acquires and Extends are left out: without an answer they hide no violation. A release is left out, too, if
		// its hold may never have been granted.
		case history.Release, history.Store:
			if op.Kind == history.Release && !c.had(op) {
				break
			}
			// after a call for several pages, "lost" does not say which page
			if op.Outcome == history.Unknown && op.Reason != history.Lost {
				e.unknown++
			} else if op.Outcome == history.OK {
				e.known++
			}
		}
		if op.Worker < 0 || op.Key < 0 {
			continue
		}
		if op.Kind == history.End {
			since[op.Worker] = 0
		}
		if op.Kind != history.Acquire || !op.Outermost() {
			continue
		}
		if since[op.Worker] == 0 {
			since[op.Worker] = op.Call
		}
		if c.Claims.Once && ticks[op.Key] {
			e.handOffs++ // another worker has tried the same tick
		}
		ticks[op.Key] = true
		k := &keys[op.Key]
		if op.Outcome != history.OK {
			k.refused = k.refused || op.Reason == history.Busy || op.Reason == history.Quorum
			continue
		}
		e.holds++
		if k.hold > 0 {
			h := &c.holds[k.hold-1]
			contended := k.refused || c.clash(h.Permits, op.Permits) &&
				since[op.Worker] < min(h.lapse(), h.releaseReturn)
			if contended && h.Worker != op.Worker {
				e.handOffs++
			}
		}
		*k, since[op.Worker] = last{hold: c.holdAt(op.ID) + 1}, 0
	}
	return e
}

// had reports whether the hold of a release was certainly granted. If the history does not have the hold, had
// returns true.
func (c *Case) had(op *history.Op) bool {
	h := c.hold(op.Hold)
	return h == nil || h.Outcome == history.OK
}

// stoodLongest is the longest pause of a process; nil if none existed.
func (c *Case) stoodLongest() (longest *window) {
	for i := range c.windows {
		w := &c.windows[i]
		if c.Ops[w.op].Kind == history.Gap && (longest == nil || w.to-w.from > longest.to-longest.from) {
			longest = w
		}
	}
	return longest
}

// failures describes servers and programs that failed without a planned fault, and faults that could not be ended.
func (c *Case) failures() (doubts []string) {
	if c.Measured != nil {
		doubts = append(doubts, c.Measured.Ended...)
	}
	for i := range c.windows {
		w := &c.windows[i]
		if k := c.Ops[w.op].Kind; k == history.Incident || k == history.Role {
			doubts = append(doubts, w.String())
		}
		switch fault := c.Ops[w.op].Kind == history.Fault && !w.failed; {
		case w.heal >= 0 && c.Ops[w.heal].Outcome == history.Failed:
			doubts = append(doubts, fmt.Sprintf("%s was not healed: %s", w.name,
				cmp.Or(c.Notes[c.Ops[w.heal].ID], "the reason is unknown")))
		case w.heal < 0 && fault && c.Faults[c.Ops[w.op].Value].To > 0:
			doubts = append(doubts, w.name+" was not healed: the history has no end of it")
		}
	}
	return doubts
}

// enoughOfAFault is a share of the planned length of a fault. A fault that was in force for a smaller share was
// too short.
const enoughOfAFault = 0.5

// coincided tells, for each fault in the header, whether a worker held the lock or waited for it during the fault.
func (c *Case) coincided() []bool {
	met := make([]bool, len(c.Faults))
	for _, w := range c.windows {
		if w.fault && !w.failed {
			n := c.Ops[w.op].Value
			met[n] = met[n] || c.busy(c.inForce(&w))
		}
	}
	return met
}

// inForce is the period of a fault until its heal began. The fault does not hit who comes after that.
func (c *Case) inForce(w *window) period {
	if w.heal < 0 {
		return w.period
	}
	return period{w.from, max(c.Ops[w.op].Return, c.Ops[w.heal].Call)}
}

// idleFaults describes planned faults that were not injected, that were in force too briefly, or that coincided with
// neither a holder nor a waiter.
func (c *Case) idleFaults(met []bool) (doubts []string) {
	injected, short := make([]bool, len(c.Faults)), map[int64]time.Duration{}
	for _, w := range c.windows {
		if !w.fault || w.failed {
			continue
		}
		n := c.Ops[w.op].Value
		injected[n] = true
		if f := &c.Faults[n]; w.heal >= 0 && f.Timed {
			if lasted := c.Ops[w.heal].Call - c.Ops[w.op].Return; float64(
				lasted) < enoughOfAFault*float64(f.To-f.From) {
				short[n] = lasted
			}
		}
	}
	for i, p := range c.Faults {
		if p.ByHand {
			continue // injected by hand, so it is in no plan
		}
		if !injected[i] {
			doubts = append(doubts, fmt.Sprintf("fault %d, %s, was planned and not injected", i, p.Name))
		} else if !met[i] {
			doubts = append(doubts, fmt.Sprintf("fault %d, %s, coincided with neither a holder nor a waiter", i,
				p.Name))
		} else if lasted, ok := short[int64(i)]; ok {
			doubts = append(doubts, fmt.Sprintf("fault %d, %s, was planned for %s and in force for %s only", i, p.Name,
				human.Duration(p.To-p.From),
				human.Duration(lasted)))
		}
	}
	return doubts
}

// busy tells whether a worker held the lock or waited for it in a period. A visit that could not reach its service does
// not count.
func (c *Case) busy(w period) bool {
	first := sort.Search(len(c.Ops), func(i int) bool { return c.Ops[i].Return >= w.from })
	for i := range c.Ops[first:] {
		op := &c.Ops[first+i]
		visit := c.Header.Service && op.Kind == history.Store && op.Reason != history.Unreachable
		if (op.Kind == history.Acquire || visit) && op.Call <= w.to {
			return true
		}
	}
	for _, n := range c.byCall {
		h := &c.holds[n]
		if h.Call > w.to {
			break
		}
		if h.Outcome == history.OK && w.meets(h.Call, min(h.lapse(), h.releaseReturn)) {
			return true
		}
	}
	met := false
	c.waits(func(v *wait) { met = met || w.meets(v.start, v.stop) })
	return met
}
