// Package compare tells what differs between runs from what is noise: saved runs side by side, trials in turns, and
// searches for the highest value that holds an objective. It checks gates on runs and on changes. It starts no run.
package compare

import (
	"cmp"
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// The significance that comparisons ask for. It is that of a whole table: five tables in a hundred that compare a
// thing with itself show a difference, not five numbers in a hundred.
const (
	familyAlpha = 0.05
	confidence  = 0.95
)

// effect is what a difference comes to.
type effect string

// The effects.
const (
	none   effect = ""  // the first side, or nothing to compare
	few    effect = "?" // so few runs that no difference could be told from noise
	noise  effect = "~"
	Better effect = "better"
	Worse  effect = "worse"
)

// Class names the effect where signs cannot: better, worse, or plain.
func (e effect) Class() string {
	if e == Better || e == Worse {
		return string(e)
	}
	return "plain"
}

// words are those of the effect, of which each table has its own for what was found.
func (e effect) words(nothing, within, found string) string {
	return cmp.Or(map[effect]string{none: nothing, few: tooFew, noise: within}[e], found)
}

// tooFew is the answer of a comparison in which nothing can be told.
const tooFew = "not enough runs to say"

// gated is the effect as gates take it: their intervals tell them that runs are too few.
func (e effect) gated() effect {
	if e == few {
		return noise
	}
	return e
}

// median is a sample's with the interval of order statistics that holds it at the given level.
func median(values []float64, level float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), level)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// change is by what share of the first value the second is greater.
func change(from, to float64) float64 {
	switch {
	case from == to:
		return 0
	case from == 0:
		return math.Copysign(math.MaxFloat64, to)
	default:
		return (to - from) / math.Abs(from)
	}
}

// whole writes a change in whole per cents, as a table has it.
func whole(x float64) string {
	if x = math.Round(100 * x); x == 0 || math.Abs(x) >= math.MaxFloat64 {
		return signed(x)
	}
	return fmt.Sprintf("%+.0f %%", x)
}

// signed writes a change in percent with its sign.
func signed(x float64) string {
	switch {
	case x >= math.MaxFloat64 || math.IsInf(x, 1):
		return "+∞"
	case x == 0:
		return "0 %"
	case x > 0:
		return "+" + human.Percent(x)
	default:
		return "-" + human.Percent(-x)
	}
}
