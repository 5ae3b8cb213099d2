package explore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hammerlock/checker"
)

// Beyond is the result of the random schedules, which have more deviations than those of the search.
type Beyond struct {
	Schedules  int `json:"schedules"`
	Fewest     int `json:"fewest"`     // smallest number of deviations in a schedule
	Deviations int `json:"deviations"` // largest number of deviations in a schedule
	Decisions  int `json:"decisions"`  // largest known number of decisions in a schedule
	Options    int `json:"options"`    // largest known number of options of a decision
	// number of schedules that prove nothing, because they were too long or their counterexample did not replay
	Wrong int    `json:"wrong"`
	Seed  uint64 `json:"seed"`
}

func (b *Beyond) schedules() int {
	if b == nil {
		return 0
	}
	return b.Schedules
}

func (b *Beyond) String() string {
	text := fmt.Sprintf("%s with up to %s (seed %d)", counted(b.Schedules, "random schedule"),
		counted(b.Deviations, "deviation"), b.Seed)
	if b.Wrong > 0 {
		text += fmt.Sprintf(", %d of them cut short", b.Wrong)
	}
	return text
}

// after returns the text followed by the result; empty if no random schedule was run.
func (b *Beyond) after(text string) string {
	if b.schedules() == 0 {
		return ""
	}
	return text + b.String()
}

// mostBeyond is the largest number of deviations by which a random schedule exceeds the bound.
const mostBeyond = 4

// random runs schedules with at least more+1 deviations, until the budget ends or the wanted number was run. The
// decisions that deviate are drawn evenly from those of the plain schedule, as in delay-bounded search (Emmi, Qadeer,
// Rakamaric 2011). The seed and the schedule's number determine the draw.
func (s *search) random(more int) (err error) {
	b := &Beyond{
		Fewest: more + 1, Deviations: s.o.Deviations + mostBeyond, Decisions: s.length, Options: s.widest,
		Seed: s.o.Seed,
	}
	s.report.Beyond = b
	over := func(i int) bool {
		return s.o.Schedules > 0 && i == s.o.Schedules || s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget
	}
	s.inOrder(over, func(k *kit, i int) (d done) {
		r := rand.New(rand.NewPCG(s.o.Seed, uint64(i)))
		left, length := more+1+r.IntN(b.Deviations-more), s.length
		d.run, d.err = play(s.t, s.spec, &s.o, k, nil, nil, false, func(at, options int) int {
			if options < 2 || r.IntN(max(length-at, 1)) >= left {
				return 0
			}
			left--
			return 1 + r.IntN(options-1)
		})
		if d.err == nil && d.run.wrong == nil {
			_, d.v, d.err = judge(d.run)
		}
		return d
	}, func(_ int, d done) bool {
		b.Schedules++
		s.tell(Progress{Deviations: b.Deviations, Run: b.Schedules, Of: s.o.Schedules, Random: true})
		switch {
		case d.err != nil:
			err = d.err
		case d.run.wrong != nil:
			b.Wrong++
		case s.judged(d.run, d.v):
			d.n = s.report.Schedules() + b.Schedules
			if err = s.shrink(&d); err == nil {
				err = s.found(&d)
			}
			if errors.Is(err, errDiverged) {
				b.Wrong++
				err = nil
			}
		}
		return err == nil && s.report.Found == nil
	})
	if s.report.Found == nil && b.Schedules < s.o.Schedules {
		s.report.Status = checker.Inconclusive
		s.report.Reason = fmt.Sprintf("%d of %d random schedules were run", b.Schedules, s.o.Schedules)
	}
	return err
}

// shrink removes the deviations that a counterexample does not need.
func (s *search) shrink(d *done) error {
	k := newKit()
	for i := 0; i < len(d.run.taken); {
		given := slices.Delete(slices.Clone(d.run.taken), i, i+1)
		fewer, err := play(s.t, s.spec, &s.o, k, given, nil, false, nil)
		if err != nil {
			return err
		}
		if i++; fewer.wrong != nil || len(fewer.taken) < len(given) {
			continue
		}
		_, still, err := judge(fewer)
		if err != nil {
			return err
		}
		if still != nil {
			d.run, d.v, i = fewer, still, 0
		}
	}
	return nil
}
