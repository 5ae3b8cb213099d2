package checker

import (
	"fmt"

	"hammerlock/history"
)

// counted is what the values of a page tell where nobody says whose stores were seen.
type counted struct {
	least        int64 // the smallest value that was read, or replaced
	known        bool  // ... is known
	acknowledged int64
	unknown      int64
	final        int64
	read         bool            // the page was read at the end
	by           map[int64]int32 // by value: the first acknowledged store of it, plus one
	doubled      int64           // acknowledged stores of a value that another had stored: each replaced the same one
	pair         witness
}

// byValues judges a history whose operations name no stores. Each store writes one more than its visit read, so two
// acknowledged stores of one value have replaced the same one, and one of them is lost; and the page has grown by as many
// as were acknowledged. That finds that page views are lost, and of two of one value whose; without a count at the end, or
// with stores that had no answer, it may not find them all.
func (u *updates) byValues() Verdict {
	pages := make([]counted, u.keys)
	for i := range u.Ops {
		op := &u.Ops[i]
		if op.Key < 0 || op.Outcome == history.Failed {
			continue
		}
		p := &pages[op.Key]
		switch op.Kind {
		case history.Load:
			if op.Outcome == history.OK {
				p.begins(op.Value)
			}
		case history.Store:
			if op.Outcome == history.Unknown {
				p.unknown++
				continue
			}
			u.acknowledged++
			p.begins(op.Value - 1)
			p.store(op.Value, int32(i))
		case history.Final:
			p.final, p.read = op.Value, true
		}
	}
	unread, inexact, more := 0, false, int64(0)
	for k := range pages {
		p := &pages[k]
		lost := p.doubled
		if p.read {
			lost = max(lost, p.acknowledged-(p.final-p.least))
			more += max(p.final-p.least-p.acknowledged-p.unknown, 0)
			inexact = inexact || p.unknown > 0 && p.acknowledged > 0
		} else if p.acknowledged > 0 {
			unread++
		}
		if lost == 0 {
			continue
		}
		u.lost += lost
		cause := u.forgotten("overwritten")
		if p.doubled > 0 {
			cause = u.conflict(p.pair.store, p.pair.other)
		} else {
			p.pair = witness{p.last(), -1}
		}
		if u.causes[cause] == 0 {
			u.first[cause] = p.pair
		}
		u.causes[cause] += lost
	}
	return u.ofValues(unread, inexact, more)
}

func (p *counted) begins(value int64) {
	if !p.known || value < p.least {
		p.least, p.known = value, true
	}
}

func (p *counted) store(value int64, i int32) {
	if p.by == nil {
		p.by = map[int64]int32{}
	}
	p.acknowledged++
	if first := p.by[value]; first == 0 {
		p.by[value] = i + 1
	} else if p.doubled++; p.doubled == 1 {
		p.pair = witness{first - 1, i}
	}
}

// last is the acknowledged store of the greatest value.
func (p *counted) last() int32 {
	best, at := int64(-1), int32(0)
	for value, i := range p.by {
		if value > best {
			best, at = value, i-1
		}
	}
	return at
}

func (u *updates) ofValues(unread int, inexact bool, more int64) Verdict {
	v := Verdict{Exposed: u.acknowledged, Violations: u.lost, Misses: map[string]int64{}}
	switch {
	case u.lost > 0:
		v.Status, v.Causes = Fail, u.causes
		for _, cause := range updateCauses {
			if u.causes[cause] > 0 {
				v.Cause = cause
				u.tell(&v, u.first[cause])
				break
			}
		}
		v.Summary = fmt.Sprintf("%s of %s acknowledged page views lost, by their values: nothing says whose stores were seen",
			count(u.lost), count(u.acknowledged))
	case u.acknowledged == 0:
		v.Summary = "no page view was stored"
	case more > 0:
		v.Summary = fmt.Sprintf("the pages have %s views more than were stored", count(more))
	case unread > 0:
		v.Summary = fmt.Sprintf("%d pages were not read at the end, and nothing says whose stores were seen", unread)
	case inexact:
		v.Summary = "stores without an answer may hide a loss: nothing says whose stores were seen"
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s page views acknowledged, none lost by their values: at most %s", count(u.acknowledged), atMost(u.acknowledged))
	}
	return v
}
