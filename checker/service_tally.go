package checker

import (
	"fmt"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Tally has the totals of a run without a history. It can show that page views are missing, not which.
type Tally struct {
	Acknowledged int64 // number of acknowledged stores
	Unknown      int64 // number of stores that may have taken effect
	Final        int64 // final number of page views, over all pages
	// Doubt names an unplanned event, such as a server that ended, that may have changed the totals. Excused is the
	// largest number of page views that the event can have cost.
	Doubt   string
	Excused int64
	Unread  bool // the counter could not be read at the end, because of Doubt
	// Missing means that visits of a lost machine are not in the totals, but may have been counted. Otherwise a final
	// number that is too large is a violation.
	Missing bool
}

// Lost is the number of acknowledged page views that are certainly missing.
func (t Tally) Lost() int64 { return max(t.Acknowledged-t.Final, 0) }

// Verdict compares the counter with the acknowledged visits. Each store writes one more than a load saw, so the count
// cannot exceed the number of stores. Stores without an answer may have taken effect and hide losses.
func (t Tally) Verdict() Verdict {
	v := Verdict{Checker: "lost-updates", Exposed: t.Acknowledged, Violations: t.Lost()}
	switch {
	case t.Unread:
		v.Violations, v.Summary = 0, t.Doubt+"; the counter cannot be read"
	case t.Lost() > t.Excused:
		v.Status, v.Cause = Fail, history.LostUpdate
		v.Summary = fmt.Sprintf("%s of %s acknowledged page views lost, %s counted",
			human.Count(t.Lost()), human.Count(t.Acknowledged), human.Count(t.Final))
		if t.Doubt != "" {
			v.Summary += fmt.Sprintf("; at most %s are excused: %s", human.Count(t.Excused), t.Doubt)
		}
	case t.Final > t.Acknowledged+t.Unknown && !t.Missing:
		v.Status, v.Cause = Fail, history.Duplicate
		v.Summary = fmt.Sprintf("%s page views counted, but only %s stored", human.Count(t.Final),
			human.Count(t.Acknowledged+t.Unknown))
	case t.Doubt != "":
		v.Violations, v.Summary = 0, t.Doubt
		if t.Lost() > 0 {
			v.Summary += fmt.Sprintf("; %s of %s acknowledged page views are missing, up to %s are excused",
				human.Count(t.Lost()), human.Count(t.Acknowledged), human.Count(t.Excused))
		}
	case t.Acknowledged == 0:
		v.Summary = "no page view was stored"
	case t.Unknown > 0:
		v.Summary = fmt.Sprintf("%s page views acknowledged, %s counted, but %s stores had no answer",
			human.Count(t.Acknowledged), human.Count(t.Final), human.Count(t.Unknown))
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s page views acknowledged, %s counted, none lost", human.Count(t.Acknowledged),
			human.Count(t.Final))
	}
	return v
}
