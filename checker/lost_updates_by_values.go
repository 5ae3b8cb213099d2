package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// byValues judges a history whose operations do not name stores. Each store writes one more than its visit read. So two
// acknowledged stores of the same value have replaced the same store, and one of them is lost. The page must also have
// grown by the number of acknowledged stores. Losses may stay hidden without a final value, or if stores had no answer.
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
			p.most = max(p.most, op.Value)
			if op.Outcome == history.Unknown {
				p.unknown++
				continue
			}
			u.acknowledged++
			p.begins(op.Value - 1)
			p.store(op.Value, int32(i))
		case history.Final:
			p.final, p.read = op.Value, int32(i)+1
		}
	}
	unread, inexact, more := 0, false, int64(0)
	for k := range pages {
		p := &pages[k]
		lost := p.doubled
		if p.read > 0 {
			lost = max(lost, p.acknowledged-(p.final-p.least))
			above := max(p.final-p.least-p.acknowledged-p.unknown, 0)
			if more += above; above > 0 && p.acknowledged > 0 && p.final > p.most && u.Wire == "" && u.Partial == "" {
				u.wrong(history.Corrupt, p.last, p.read-1) // the record is whole, and no visit wrote this number
			}
			inexact = inexact || p.unknown > 0 && p.acknowledged > 0
		} else if p.acknowledged > 0 {
			unread++
		}
		if lost == 0 {
			continue
		}
		u.blamePage(p, lost)
	}
	u.byValue = pages
	u.changed()
	return u.ofValues(unread, inexact, more)
}

// blamePage blames the lost stores of a page. It leaves out as many as excused late visits can have overwritten.
func (u *updates) blamePage(p *counted, lost int64) {
	w, most := u.overwritten(p)
	if most = min(most, lost); most > 0 {
		lost -= most
		u.excused, u.excuse = u.excused+most, w
	}
	for _, value := range slices.Sorted(maps.Keys(p.by)) {
		for _, other := range p.by[value][1:] {
			first := p.by[value][0]
			if cause := u.conflict(first, other); lost > 0 && (most == 0 || u.explains(cause, first, other) == nil) {
				lost--
				u.loses(cause, first, other)
			}
		}
	}
	for range lost {
		u.loses(u.forgotten(history.Overwritten), p.last, p.read-1)
	}
}

// overwritten returns the number of stores of a page that excused late visits can have overwritten, and the first
// excuse. A visit can have overwritten the stores that were answered between its load and its own answer.
func (u *updates) overwritten(p *counted) (why *window, most int64) {
	var returns []time.Duration
	var late []int32
	for _, value := range slices.Sorted(maps.Keys(p.by)) {
		for _, i := range p.by[value] {
			returns = append(returns, u.Ops[i].Return)
			if w := u.explains(history.ZombieWrite, i, -1); w != nil {
				why, late = cmp.Or(why, w), append(late, i)
			}
		}
	}
	slices.Sort(returns)
	for _, i := range late {
		since := u.hold(u.Ops[i].Hold).Return
		if load := u.load(i); load >= 0 {
			since = u.Ops[load].Call
		}
		from, _ := slices.BinarySearch(returns, since)
		to, _ := slices.BinarySearch(returns, u.Ops[i].Return)
		most += int64(to - from)
	}
	return why, most
}

func (p *counted) begins(value int64) {
	if !p.known || value < p.least {
		p.least, p.known = value, true
	}
}

func (p *counted) store(value int64, i int32) {
	if p.by == nil {
		p.by = map[int64][]int32{}
	}
	p.acknowledged, p.last = p.acknowledged+1, i
	if p.by[value] = append(p.by[value], i); len(p.by[value]) > 1 {
		p.doubled++
	}
}

func (u *updates) ofValues(unread int, inexact bool, more int64) Verdict {
	v := Verdict{Exposed: u.acknowledged}
	worst := u.into(&v, updateCauses)
	switch {
	case v.Status == Fail:
		u.tell(&v, worst)
		v.Summary = fmt.Sprintf("%s of %s acknowledged page views lost, by their values: "+
			"nothing says whose stores were seen",
			human.Count(u.lost), human.Count(u.acknowledged))
		if u.lost == 0 {
			v.Summary = "the counter showed a number that no visit had stored"
		}
	case u.excused > 0:
		v.Summary = u.excuseText("lost page views")
	case u.acknowledged == 0:
		v.Summary = "no page view was stored"
	case more > 0:
		v.Summary = fmt.Sprintf("the pages have %s views more than were stored", human.Count(more))
	case unread > 0:
		v.Summary = fmt.Sprintf("%d pages were not read at the end, and nothing says whose stores were seen", unread)
	case inexact:
		v.Summary = "stores without an answer may hide a loss: nothing says whose stores were seen"
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s page views acknowledged, none lost by their values: %s",
			human.Count(u.acknowledged), atMost(u.acknowledged))
	}
	return v
}
