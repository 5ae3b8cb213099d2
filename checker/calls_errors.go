package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// callErrors has the numbers of calls of one kind before anything was broken: all calls, those that ended in an error,
// and those that ended in a prompt error.
type callErrors struct {
	called, failed, prompt int64
	first                  *history.Op // the first prompt error
}

// errorsInCalm blames calls that ended in an error before anything was broken. Two kinds of errors are not blamed,
// because the machine may have caused them: a request without an answer, and an error that came late, such as a
// timeout. If no call can be blamed, but most calls ended in errors, the verdict is inconclusive.
func (k *callsCheck) errorsInCalm() {
	if k.Wire != "" {
		return // the replies to a program were seen, but not what the program made of them
	}
	until, off := k.broken(), k.firstCalledOff()
	var kinds [history.Release + 1]callErrors
	for i := range k.Ops {
		op := &k.Ops[i]
		if op.Return >= until {
			break
		}
		if !awaited(op) || op.Return >= off[op.Process] || !k.owed(op) {
			continue
		}
		e := &kinds[op.Kind]
		e.called++
		if !endedInError(op) {
			continue
		}
		e.failed++
		answered := op.Reason == history.Other || op.Reason == history.Refused
		if k.seesLateness() || answered && op.Latency() <= k.promptness() {
			e.prompt++
			e.first = cmp.Or(e.first, op)
		}
	}
	k.blameErrors(kinds[:])
}

// blameErrors judges the errors of each kind of call, the most frequent kind first.
func (k *callsCheck) blameErrors(kinds []callErrors) {
	slices.SortStableFunc(kinds, func(a, b callErrors) int { return cmp.Compare(b.prompt, a.prompt) })
	var called, failed int64
	for _, e := range kinds {
		called, failed = called+e.called, failed+e.failed
		for n := range e.prompt {
			if k.ServerErrors {
				break
			}
			t := testimony{}
			if n == 0 {
				t = testimony{[]history.Op{*e.first}, []string{
					fmt.Sprintf("%s of %s ended in an error while nothing was or had been broken: %s",
						human.Count(e.failed), human.Quantity(e.called, e.first.Kind.String()), k.said(e.first)),
					fmt.Sprintf("the first was %s by %s at %s, answered at %s", callName(e.first), who(e.first.Worker),
						clock(e.first.Call), clock(e.first.Return)),
				}}
			}
			k.blame(history.Unanswered, t, nil)
		}
	}
	if k.failed = failed; 2*failed > called {
		k.undecided = fmt.Sprintf("most calls ended in errors while nothing was or had been broken, %s of %s: %s",
			human.Count(failed), human.Count(called), k.allSaid())
	}
}

// broken returns the time at which something was first broken, or may have been; Forever if nothing was.
func (k *callsCheck) broken() time.Duration {
	until := history.Forever
	for i := range k.windows {
		w := &k.windows[i]
		from := minus(w.from, k.anySlack())
		switch {
		case w.effect == counting || k.Ops[w.op].Kind == history.Gap:
			continue
		case !w.fault:
			from = minus(from, noticed)
		}
		until = min(until, from)
	}
	return until
}

// firstCalledOff returns, for each process, the time at which its first cancelled call began: the cancellation may have
// broken a connection of its client. Forever = no call was cancelled.
func (k *callsCheck) firstCalledOff() []time.Duration {
	first := slices.Repeat([]time.Duration{history.Forever}, max(k.processes, 1))
	for i := range k.Ops {
		if op := &k.Ops[i]; op.Reason == history.Canceled {
			first[op.Process] = min(first[op.Process], op.Call)
		}
	}
	return first
}

// owed reports whether a call should have succeeded: its process was not paused during the call or within one lease
// before the call, and its hold was certainly valid.
func (k *callsCheck) owed(op *history.Op) bool {
	if k.stillFor(op.Process, minus(op.Call, k.lease), op.Return) > 0 {
		return false
	}
	if op.Kind == history.Acquire && op.Outermost() {
		return true
	}
	h := k.hold(op.Hold)
	return h != nil && h.Outcome == history.OK && op.Return < h.Lost &&
		(h.TTL == 0 || op.Return < plus(h.Call, h.TTL-Margin(h.TTL)))
}

// said returns the text of the first error of the same kind. If no text was kept, it returns the names of kind,
// outcome and reason.
func (k *callsCheck) said(op *history.Op) string {
	what := op.Class()
	if k.Measured != nil && k.Measured.Said[what] != "" {
		return k.Measured.Said[what]
	}
	return what
}

func (k *callsCheck) allSaid() string {
	if k.Measured == nil {
		return "no text was kept"
	}
	var all []string
	for _, what := range slices.Sorted(maps.Keys(k.Measured.Said)) {
		all = append(all, what+": "+k.Measured.Said[what])
	}
	return strings.Join(all, "; ")
}
