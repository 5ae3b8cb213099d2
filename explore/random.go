package explore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hammerlock/checker"
)

// Beyond is what random schedules with more deviations than the bound came to.
type Beyond struct {
	Schedules  int    `json:"schedules"`
	Deviations int    `json:"deviations"` // at most
	Wrong      int    `json:"wrong"`      // of them: they were cut or did not fit, and prove nothing
	Seed       uint64 `json:"seed"`
}

func (b *Beyond) schedules() int {
	if b == nil {
		return 0
	}
	return b.Schedules
}

// String counts them.
func (b *Beyond) String() string {
	text := fmt.Sprintf("%s with up to %s (seed %d)", counted(b.Schedules, "random schedule"), counted(b.Deviations, "deviation"), b.Seed)
	if b.Wrong > 0 {
		text += fmt.Sprintf(", %d of them cut short", b.Wrong)
	}
	return text
}

// after goes on with what was said about the schedules up to the bound.
func (b *Beyond) after(text string) string {
	if b.schedules() == 0 {
		return ""
	}
	return text + b.String()
}

// mostBeyond is how many deviations a random schedule has at most beyond the bound.
const mostBeyond = 4

// random runs schedules with more than so many deviations, until the budget ends or there were as many as were asked
// for. Each has so many, at decisions that are drawn evenly from as many as the plain schedule has (as delay-bounded
// search does: Emmi, Qadeer, Rakamaric 2011).
func (s *search) random(more int) error {
	b := &Beyond{Deviations: s.o.Deviations + mostBeyond, Seed: s.o.Seed}
	s.report.Beyond = b
	r := rand.New(rand.NewPCG(s.o.Seed, 0))
	for s.o.Schedules == 0 || b.Schedules < s.o.Schedules {
		if s.o.Budget > 0 && time.Since(s.begun) > s.o.Budget {
			if s.o.Schedules > 0 {
				s.report.Status, s.report.Reason = checker.Inconclusive, fmt.Sprintf("%d of %d random schedules were run", b.Schedules, s.o.Schedules)
			}
			return nil
		}
		left, length := more+1+r.IntN(b.Deviations-more), s.length
		run, err := play(s.t, s.spec, &s.o, s.known, nil, nil, false, func(at, options int) int {
			if options < 2 || r.IntN(max(length-at, 1)) >= left {
				return 0
			}
			left--
			return 1 + r.IntN(options-1)
		})
		if err != nil {
			return err
		}
		b.Schedules++
		if run.wrong != nil {
			b.Wrong++
			continue
		}
		_, v, err := judge(run)
		if err != nil {
			return err
		}
		if s.judged(run, v) {
			if run, v, err = s.shrink(run, v); err != nil {
				return err
			}
			if err = s.found(run, v); !errors.Is(err, errDiverged) {
				return err
			}
			b.Wrong++
		}
	}
	return nil
}

// shrink leaves out the deviations of a counterexample that it does without.
func (s *search) shrink(run *schedule, v *checker.Verdict) (*schedule, *checker.Verdict, error) {
	for i := 0; i < len(run.taken); {
		given := slices.Delete(slices.Clone(run.taken), i, i+1)
		fewer, err := play(s.t, s.spec, &s.o, s.known, given, nil, false, nil)
		if err != nil {
			return nil, nil, err
		}
		if i++; fewer.wrong != nil || len(fewer.taken) < len(given) {
			continue
		}
		_, still, err := judge(fewer)
		if err != nil {
			return nil, nil, err
		}
		if still != nil {
			run, v, i = fewer, still, 0
		}
	}
	return run, v, nil
}
