// Package compare tells differences between runs from noise: saved runs side by side, trials in turns, and searches for
// the highest value at which an objective holds. It checks gates on runs and on changes. It starts no run.
package compare

import (
	"cmp"
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// The significance level of a comparison. It holds for a whole table: of a hundred tables that compare a thing with
// itself, five show a difference.
const (
	familyAlpha = 0.05
	confidence  = 0.95
)

// effect is the result of comparing two values.
type effect string

// The effects.
const (
	none   effect = ""  // the first side, or nothing to compare
	few    effect = "?" // too few runs to tell any difference from noise
	noise  effect = "~"
	Better effect = "better"
	Worse  effect = "worse"
)

// Class names the effect for style sheets: better, worse, or plain.
func (e effect) Class() string {
	if e == Better || e == Worse {
		return string(e)
	}
	return "plain"
}

// words describes the effect; each table brings its own words for a found difference.
func (e effect) words(nothing, within, found string) string {
	return cmp.Or(map[effect]string{none: nothing, few: tooFew, noise: within}[e], found)
}

// tooFew is the result of a comparison with too few runs.
const tooFew = "not enough runs to say"

// gated converts the effect for gates, which judge by intervals whether there are too few runs.
func (e effect) gated() effect {
	if e == few {
		return noise
	}
	return e
}

// median is a sample's median with its interval of order statistics at the given level.
func median(values []float64, level float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), level)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// change is the difference of the second value, as a share of the first.
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

// whole writes a change in whole per cents, for a table.
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
