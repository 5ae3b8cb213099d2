package checker

import (
	"cmp"
	"fmt"
	"slices"

	"hammerlock/history"
	"hammerlock/internal/human"
)

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

// answered describes a visit and its answer.
func answered(op *history.Op) string {
	return fmt.Sprintf("%s visited page %d at %s and was told at %s that it was number %s", who(op.Worker), op.Key,
		clock(op.Call), clock(op.Return), human.Count(op.Value))
}

// untold is the verdict if the answers have no counts.
var untold = Verdict{Status: NotJudged, Summary: "the answers tell no count"}

// counts lists one visit for each count that was told.
func (s *served) counts() []*history.Op {
	return slices.CompactFunc(slices.Clone(s.told), func(a, b *history.Op) bool { return a.Value == b.Value })
}

// most is the greatest count that all visits together can reach.
func (s *served) most() int64 { return s.acknowledged() + int64(len(s.unknown)) }

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
