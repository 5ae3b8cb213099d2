package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hammerlock/history"
)

// Stated is a verdict that needs no proof from a history: on an expectation, on a gate, or on an exploration as a
// whole. Cause is empty unless it failed.
func Stated(name string, status Status, cause, summary string) Verdict {
	return Verdict{Checker: name, Status: status, Cause: cause, Summary: summary}
}

// BrokeDown is the verdict on a lock that panicked or ended its process. The evidence is the last operation before.
func BrokeDown(b *history.Breakdown, before []history.Op) Verdict {
	lines := strings.Split(b.Text, "\n")
	v := Stated(history.Panicked, Fail, history.Panicked, lines[0])
	if len(b.Said) > 0 {
		lines = b.Said
	}
	return ended(v, lines, before)
}

// NeverReturned is the verdict on a call of the lock that does not return in a world without time and connections.
func NeverReturned(h *history.Hung, before []history.Op) Verdict {
	summary := fmt.Sprintf("a call of the lock by %s does not return, although its context has ended and all "+
		"connections are broken", who(h.Worker))
	return ended(Stated(history.Calls, Fail, history.HungCall, summary),
		append([]string{summary}, strings.Split(h.Text, "\n")...), before)
}

func ended(v Verdict, story []string, before []history.Op) Verdict {
	v.Violations, v.Story = 1, story
	if n := len(before); n > 0 {
		v.Evidence = before[n-1:]
	}
	return v
}

// Holds tells whether a violation is held against the lock where the faults of the history were planned to break what
// any lock relies on. Then only what the judge blames on something else counts.
func (v *Verdict) Holds(h *history.History) bool {
	broke := func(such func(*history.Effect) bool) bool {
		return slices.ContainsFunc(h.Faults, func(f history.Injection) bool { return such(&f.Effect) })
	}
	forgot := broke(func(e *history.Effect) bool { return e.Loses == history.LosesKeys })
	only := func(cause string) bool { return v.Causes[cause] == cmp.Or(v.Violations, -1) }
	switch v.Checker {
	case Exclusion.Name, once.Name:
		return !only(history.ServiceLoss)
	case linearizable.Name:
		return !broke((*history.Effect).BreaksPromises)
	case lostUpdates.Name: // fences need no clock
		return !forgot && (h.Fenced || !broke((*history.Effect).BreaksPromises))
	case fencing.Name, reentrancy.Name:
		return !forgot
	case release.Name: // many draws fall into one instant of virtual time, so that tokens made of a clock are equal
		return !only(history.EqualTokens)
	}
	return true
}
