package checker

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/anishathalye/porcupine"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// countCauses lists the causes of failed verdicts of this checker, the worst first.
var countCauses = []string{history.LostUpdate, history.Duplicate, history.OutOfOrder, history.Backwards,
	history.SkippedCount}

// judgeCounts judges whether the answers are those of a counter that adds one for each visit (linearizability: Herlihy,
// Wing 1990). The counts give the order of the visits, so one pass finds every contradiction. Porcupine must find the
// same in windows of visits.
func judgeCounts(c *Case) Verdict {
	var v Verdict
	var b blames[testimony]
	var answers int64
	pages := c.served()
	for k := range pages {
		p := &pages[k]
		v.Exposed += int64(len(p.told))
		p.inOrder(&b)
		p.within(&b)
		if answers += p.acknowledged(); c.Partial == "" { // otherwise the visit that made a count may be missing
			p.gaps(&b)
		}
	}
	if v.Exposed == 0 {
		return untold
	}
	worst := b.into(&v, countCauses)
	v.Evidence, v.Story = worst.evidence, worst.story
	switch {
	case v.Status == Fail:
		v.Summary = fmt.Sprintf("%s answers contradict a counter that adds one at a time: %s",
			human.Count(v.Violations), v.Cause)
		c.adviseVisits(&v, pages)
	case 2*v.Exposed < answers:
		v.Summary = fmt.Sprintf("only %s of %s answers tell a count", human.Count(v.Exposed), human.Count(answers))
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s answers are those of a counter that adds one at a time", human.Count(v.Exposed))
	}
	r := rand.New(rand.NewPCG(uint64(len(c.Ops)), uint64(c.keys)))
	for k := range pages {
		pages[k].compareWithPorcupine(&v, r)
	}
	return v
}

// inOrder blames pairs of visits with equal counts, and pairs whose earlier visit was told the greater count. Equal
// counts are lost updates if the final count lacks visits.
func (s *served) inOrder(b *blames[testimony]) {
	s.disorder(s.told, func(cause string, smaller, greater *history.Op) {
		if cause == history.Duplicate && s.read && s.lost() > 0 {
			cause = history.LostUpdate
		}
		b.blame(cause, testimony{[]history.Op{*greater, *smaller}, []string{answered(greater), answered(smaller)}}, nil)
	})
}

// disorder runs the function found for each pair of visits that contradicts the order of counts.
func (*served) disorder(told []*history.Op, found func(cause string, smaller, greater *history.Op)) {
	var last *history.Op // the visit that was called last, among those with smaller counts
	for i, op := range told {
		if i > 0 && told[i-1].Value == op.Value {
			found(history.Duplicate, told[i-1], op)
		}
		if last != nil && op.Return < last.Call {
			found(history.OutOfOrder, last, op)
		}
		if last == nil || op.Call > last.Call {
			last = op
		}
	}
}

// within finds counts that are impossible: smaller than at the beginning of the run, or greater than at its end.
func (s *served) within(b *blames[testimony]) {
	for _, op := range s.told {
		switch {
		case op.Value < 0:
			b.blame(history.Backwards, testimony{[]history.Op{*op},
				[]string{answered(op), "counts are those since the run began: it went back behind that"}}, nil)
		case s.read && op.Value > s.final:
			b.blame(history.Backwards, testimony{[]history.Op{*op},
				[]string{answered(op), fmt.Sprintf("at the end the count was %s", human.Count(s.final))}}, nil)
		}
	}
}

// gaps finds counts that no visit can have made. If a count was told to no visit, a visit without an answer must have
// made it, and must have begun before a greater count was told. The visits that began first take the smallest counts.
func (s *served) gaps(b *blames[testimony]) {
	if s.silent > 0 || len(s.told) == 0 {
		return
	}
	deadline := make([]time.Duration, len(s.told)+1) // by index in told: when that count or a greater one was told
	deadline[len(s.told)] = history.Forever
	for i := len(s.told) - 1; i >= 0; i-- {
		deadline[i] = min(deadline[i+1], s.told[i].Return)
	}
	free := s.unknown
	at := int64(1)
	fill := func(upTo int64, by time.Duration, next *history.Op) {
		for ; at < upTo; at++ {
			if len(free) > 0 && free[0].Call < by {
				free = free[1:]
				continue
			}
			t := testimony{story: []string{fmt.Sprintf("no visit can have made count %s", human.Count(at))}}
			if next != nil {
				t.evidence, t.story = []history.Op{*next}, append(t.story, answered(next))
			}
			b.blame(history.SkippedCount, t, nil)
		}
	}
	for i, op := range s.told {
		if op.Value > s.most() {
			fill(s.most()+1, deadline[i], op)
			break
		}
		fill(op.Value, deadline[i], op)
		at = max(at, op.Value+1)
	}
	if s.read {
		fill(min(s.final, s.most()+1)+1, history.Forever, nil)
	}
}

// windowOfCounts is the number of visits in a window for porcupine.
const windowOfCounts = 300

// compareWithPorcupine checks windows of neighbouring counts with porcupine. Among visits with the same count it takes
// one: equal counts are an error anyway, and porcupine would try exponentially many orders.
func (s *served) compareWithPorcupine(v *Verdict, r *rand.Rand) {
	all := s.counts()
	for n := 0; n < windowsAtRandom && len(all) > 1; n++ {
		from := r.IntN(max(len(all)-windowOfCounts, 0) + 1)
		told := all[from:min(from+windowOfCounts, len(all))]
		wrong := false
		s.disorder(told, func(string, *history.Op, *history.Op) { wrong = true })
		result := porcupine.CheckOperationsTimeout(counterModel, ranked(told), secondOpinion)
		switch {
		case result == porcupine.Unknown:
			v.Misses["timeout"]++
		case (result == porcupine.Illegal) != wrong:
			v.Status, v.Cause = Fail, harnessError
			v.Summary = fmt.Sprintf("porcupine and the exact checker disagree on counts %d to %d of page "+
				"%d: porcupine says %s",
				told[0].Value, told[len(told)-1].Value, told[0].Key, result)
			return
		}
		if len(told) == len(all) {
			return
		}
	}
}

// ranked converts visits for porcupine. It replaces counts by their ranks in the window, since gaps are not
// judged here.
func ranked(told []*history.Op) (list []porcupine.Operation) {
	for i, op := range told {
		list = append(list, porcupine.Operation{ClientId: int(op.Worker), Output: int64(i) + 1, Call: int64(op.Call),
			Return: int64(op.Return)})
	}
	return list
}

// counterModel is a counter. Its state is the count; a visit adds one, and its answer is the new count.
var counterModel = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, _, output any) (bool, any) {
		return output.(int64) == state.(int64)+1, output
	},
}
