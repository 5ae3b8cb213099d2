package checker

import (
	"cmp"
	"fmt"
	"slices"
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

// served has the visits to one page of a service.
type served struct {
	told    []*history.Op // acknowledged visits with a count in their answer, sorted by count
	silent  int64         // number of acknowledged visits without a count
	unknown []*history.Op // visits that may have counted, sorted by call
	refused []*history.Op // visits that the service has refused
	final   int64
	read    bool // the count was read at the end
}

func (s *served) acknowledged() int64 { return int64(len(s.told)) + s.silent }

// lost is the number of acknowledged visits that are certainly missing from the final count; more is the number of
// views in it that no visit can have made.
func (s *served) lost() int64 { return max(s.acknowledged()-s.final, 0) }
func (s *served) more() int64 { return max(s.final-s.acknowledged()-int64(len(s.unknown)), 0) }

func (c *Case) served() []served {
	pages := make([]served, c.keys)
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Key < 0 {
			continue
		}
		p := &pages[op.Key]
		switch {
		case op.Kind == history.Final && op.Outcome == history.OK:
			p.final, p.read = op.Value, true
		case op.Kind != history.Store:
		case op.Outcome == history.Unknown:
			p.unknown = append(p.unknown, op)
		case op.Outcome == history.Failed && op.Reason == history.Refused:
			p.refused = append(p.refused, op)
		case op.Outcome == history.OK && op.Value != 0:
			p.told = append(p.told, op)
		case op.Outcome == history.OK:
			p.silent++
		}
	}
	for k := range pages {
		slices.SortFunc(pages[k].told, func(a, b *history.Op) int {
			return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Call, b.Call))
		})
		slices.SortFunc(pages[k].unknown, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return pages
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

// met counts the acknowledged visits that overlapped another visit to the same page.
func (c *Case) met() (n int64) {
	byCall := make([][]*history.Op, c.keys)
	for i := range c.Ops {
		if op := &c.Ops[i]; op.Kind == history.Store && op.Key >= 0 && op.Outcome != history.Failed {
			byCall[op.Key] = append(byCall[op.Key], op)
		}
	}
	for _, ops := range byCall {
		slices.SortFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
		busy := history.Forever // latest return of the earlier visits
		for i, op := range ops {
			before := i > 0 && op.Call < busy
			after := i+1 < len(ops) && ops[i+1].Call < op.Return
			if (before || after) && op.Outcome == history.OK {
				n++
			}
			if i == 0 || op.Return > busy {
				busy = op.Return
			}
		}
	}
	return n
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

// overcounted says in words that the final count is greater than the visits can explain.
func overcounted(acknowledged, unknown, refused, final int64) string {
	text := fmt.Sprintf("%s page views counted, but only %s acknowledged", human.Count(final),
		human.Count(acknowledged))
	if unknown > 0 {
		text += fmt.Sprintf(" and %s unknown", human.Count(unknown))
	}
	reasons := "something on the way repeats visits, or another program visits, too"
	if refused > 0 {
		text += fmt.Sprintf(", %s refused", human.Count(refused))
		reasons = "refused visits counted, " + reasons
	}
	return text + ": " + reasons
}

// counts lists one visit for each count that was told.
func (s *served) counts() []*history.Op {
	return slices.CompactFunc(slices.Clone(s.told), func(a, b *history.Op) bool { return a.Value == b.Value })
}

// untold is the verdict if the answers have no counts.
var untold = Verdict{Status: NotJudged, Summary: "the answers tell no count"}

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

// answered describes a visit and its answer.
func answered(op *history.Op) string {
	return fmt.Sprintf("%s visited page %d at %s and was told at %s that it was number %s", who(op.Worker), op.Key,
		clock(op.Call), clock(op.Return), human.Count(op.Value))
}
