package checker

import (
	"fmt"
	"strings"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// OfServices lists the checkers for a service that does its own locking: it is judged from outside, by its answers and
// by the final count.
var OfServices = []Checker{
	{Name: "activity",
		Doc:   "enough was tried: visits at the same time, faults that coincided with visits, few unknown outcomes",
		Check: judgeVisits},
	{Name: "lost-updates", Doc: "every acknowledged visit is in the final count, and nothing else is",
		Causes: []string{history.LostUpdate, history.Duplicate}, Check: judgeSums},
	{Name: "duplicates", Doc: "no two visits get the same count",
		Causes: []string{history.LostUpdate, history.Duplicate}, Check: judgeDuplicates},
	{Name: "linearizable",
		Doc: "a visit that began after another one had its answer gets a greater count, " +
			"and every count belongs to a visit",
		Causes: countCauses, Check: judgeCounts},
	{Name: "programs",
		Doc: "no program of the service that the suite started ends without a planned fault, and when all are up and " +
			"no fault is at work, visits are answered",
		Causes: []string{history.Panicked, history.Stuck}, Check: judgePrograms},
}

// judgeVisits never fails a run. It says whether enough happened for the other verdicts to mean something.
func judgeVisits(c *Case) Verdict {
	var known, unknown int64
	met, pages := c.met(), c.served()
	for _, p := range pages {
		known += p.acknowledged()
		unknown += int64(len(p.unknown))
	}
	coincided := c.coincided()
	v := Verdict{Exposed: met, Misses: map[string]int64{}, Extent: c.extent(coincided)}
	if unknown > 0 {
		v.Misses["unknown"] = unknown
	}
	doubts := append(c.failures(), c.idleFaults(coincided)...)
	if c.Partial != "" {
		doubts = append(doubts, "the history is partial: "+c.Partial)
	}
	if met < enoughHandOffs {
		doubts = append(doubts,
			fmt.Sprintf("%s acknowledged visits overlapped with another one, at least %d are needed", human.Count(met),
				enoughHandOffs))
	}
	if float64(unknown) > tooManyUnknowns*float64(known+unknown) {
		doubts = append(doubts, fmt.Sprintf("%s of %s visits may have counted: %s", human.Count(unknown),
			human.Count(known+unknown), inDoubt(pages)))
	}
	if len(doubts) > 0 {
		v.Summary = strings.Join(doubts, "; ")
		return v
	}
	v.Status = Pass
	v.Summary = fmt.Sprintf("%s acknowledged visits, %s of them at the same time as another one; %s",
		human.Count(known), human.Count(met), atMost(met))
	return v
}

// judgeSums compares the number of acknowledged visits with the final count. If every acknowledged visit was told
// a different count, and none is greater than the final count, no visit is lost. Visits without an answer do not
// matter then.
func judgeSums(c *Case) Verdict {
	var acknowledged, unknown, refused, final, lost, more int64
	unread, named := false, true
	pages := c.served()
	for _, p := range pages {
		acknowledged += p.acknowledged()
		unknown += int64(len(p.unknown))
		refused += int64(len(p.refused))
		final += p.final
		unread = unread || !p.read
		lost += p.lost()
		more += p.more()
		named = named && p.silent == 0 && len(p.counts()) == len(p.told) &&
			(len(p.told) == 0 || p.told[0].Value > 0 && p.told[len(p.told)-1].Value <= p.final)
	}
	v := Verdict{Exposed: acknowledged}
	switch {
	case acknowledged == 0:
		v.Summary = "no visit was acknowledged"
	case unread:
		v.Summary = "the count was not read at the end"
	case lost > 0:
		v.Status, v.Cause, v.Violations = Fail, history.LostUpdate, lost
		v.Summary = fmt.Sprintf("%s of %s acknowledged page views lost, %s counted", human.Count(lost),
			human.Count(acknowledged), human.Count(final))
		v.Story = []string{v.Summary}
	case more > 0 && c.Partial == "":
		v.Status, v.Cause, v.Violations = Fail, history.Duplicate, more
		v.Summary = overcounted(acknowledged, unknown, refused, final)
	case more > 0:
		v.Summary = fmt.Sprintf("%s page views counted, %s acknowledged: the history lacks visits", human.Count(final),
			human.Count(acknowledged))
	case unknown > 0 && !named:
		v.Summary = fmt.Sprintf("%s page views acknowledged, %s counted, but %s may have counted and hide as "+
			"many losses: %s", human.Count(acknowledged), human.Count(final), human.Quantity(unknown, "visit"),
			inDoubt(pages))
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s page views acknowledged, %s counted, none lost", human.Count(acknowledged),
			human.Count(final))
		if unknown > 0 {
			v.Summary += fmt.Sprintf(": each has a count of its own; %s may have counted, too",
				human.Quantity(unknown, "visit"))
		}
	}
	c.adviseVisits(&v, pages)
	return v
}

func judgeDuplicates(c *Case) Verdict {
	var v Verdict
	cause, pages := history.Duplicate, c.served()
	for _, p := range pages {
		v.Exposed += int64(len(p.told))
		for i := 1; i < len(p.told); i++ {
			if a, b := p.told[i-1], p.told[i]; a.Value == b.Value {
				v.Violations++
				if p.read && p.lost() > 0 {
					cause = history.LostUpdate
				}
				if v.Evidence == nil {
					v.Evidence, v.Story = []history.Op{*a, *b}, []string{answered(a), answered(b)}
				}
			}
		}
	}
	switch {
	case v.Exposed == 0:
		return untold
	case v.Violations > 0:
		v.Status, v.Cause = Fail, cause
		v.Summary = fmt.Sprintf("%s of %s answers tell a count that another one tells too", human.Count(v.Violations),
			human.Count(v.Exposed))
		c.adviseVisits(&v, pages)
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s answers, each with a count of its own: %s", human.Count(v.Exposed),
			atMost(v.Exposed))
	}
	return v
}
