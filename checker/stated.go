package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hammerlock/history"
)

// Stated is a verdict that needs no history as proof: on an expectation, an assertion, or a whole exploration. Cause is
// empty unless it failed.
func Stated(name string, status Status, cause, summary string) Verdict {
	return Verdict{Checker: name, Status: status, Cause: cause, Summary: summary}
}

// BrokeDown is the verdict on a lock that panicked or ended its process. The evidence is the last operation
// before that.
func BrokeDown(b *history.Breakdown, before []history.Op) Verdict {
	lines := strings.Split(b.Text, "\n")
	v := Stated(history.Panicked, Fail, history.Panicked, lines[0])
	if len(b.Said) > 0 {
		lines = b.Said
	}
	return ended(v, lines, before)
}

// NeverReturned is the verdict on a lock call that does not return although its context has ended and all connections
// are broken.
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

// Holds reports whether a violation counts against the lock in spite of planned faults. Some faults break what any
// lock relies on. A violation that such a fault may have caused does not count.
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
	case lostUpdates.Name: // fencing does not depend on clocks
		return !forgot && (h.Fenced || !broke((*history.Effect).BreaksPromises))
	case fencing.Name, reentrancy.Name:
		return !forgot
	// in virtual time many tokens are made at the same instant, so tokens made from a clock are equal
	case release.Name:
		return !only(history.EqualTokens)
	}
	return true
}
