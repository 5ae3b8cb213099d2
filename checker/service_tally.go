package checker

import (
	"fmt"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Tally is what is left of a history when only its sums were kept: it finds that page views are missing, not
// whose.
type Tally struct {
	Acknowledged int64 // stores that were acknowledged
	Unknown      int64 // stores that may have taken effect
	Final        int64 // page views in the counter at the end, over all pages
	// Doubt names what no lock answers for and may have changed the sums: a server that ended unexpectedly. Excused is
	// how many page views that can have cost at most.
	Doubt   string
	Excused int64
	Unread  bool // the counter could not be read at the end, for the doubt's reason
	// Missing says that visits are not in the sums and may have been counted: of a machine of workers that was lost.
	// Nothing else makes a count greater.
	Missing bool
}

// Lost is how many acknowledged page views are certainly missing.
func (t Tally) Lost() int64 { return max(t.Acknowledged-t.Final, 0) }

// Verdict compares the counter with the acknowledged visits. Each store writes one more than a load saw, so the
// count can never exceed the number of stores; if some may have taken effect without an answer, they may make up
// for lost ones.
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
