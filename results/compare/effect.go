// Package compare distinguishes differences between runs from noise. It compares saved runs, and trials in which two
// settings take turns, and it searches for the highest load at which an objective holds. It checks assertions (gates)
// on runs and on changes. It starts no run.
package compare

import (
	"cmp"
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// The significance level holds for a whole table: of 100 tables that compare a setting with itself, 5 show any
// difference.
const (
	familyAlpha = 0.05
	confidence  = 0.95
)

// effect is the result of a comparison of two values.
type effect string

// The effects.
const (
	none   effect = ""  // the value is of the first side, or cannot be compared
	few    effect = "?" // too few runs to tell a difference from noise
	noise  effect = "~"
	Better effect = "better"
	Worse  effect = "worse"
)

// Class returns a name for style sheets: better, worse or plain.
func (e effect) Class() string {
	if e == Better || e == Worse {
		return string(e)
	}
	return "plain"
}

// words describes the effect; found is the text for a difference.
func (e effect) words(nothing, within, found string) string {
	return cmp.Or(map[effect]string{none: nothing, few: tooFew, noise: within}[e], found)
}

// ratios explains a noise floor. It is the same for a change and for its reverse.
const ratios = "It counts ratios: ± 100 % is from half to double."

const tooFew = "not enough runs to say"

// gated converts the effect for assertions, which themselves find out whether there are too few runs.
func (e effect) gated() effect {
	if e == few {
		return noise
	}
	return e
}

// median returns the median of a sample, with a confidence interval from order statistics.
func median(values []float64, level float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), level)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// change returns the difference between two values, as a share of the first one.
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

func whole(x float64) string {
	if x = math.Round(100 * x); x == 0 || math.Abs(x) >= math.MaxFloat64 {
		return signed(x)
	}
	return fmt.Sprintf("%+.0f %%", x)
}

func signed(x float64) string { return signedBeside(x, x) }

// signedBeside formats a change with as many digits as tell it from a limit.
func signedBeside(x, limit float64) string {
	text := human.NumberBeside(100*math.Abs(x), 100*math.Abs(limit)) + " %"
	switch {
	case x >= math.MaxFloat64 || math.IsInf(x, 1):
		return "+∞"
	case x == 0:
		return "0 %"
	case x > 0:
		return "+" + text
	default:
		return "-" + text
	}
}
