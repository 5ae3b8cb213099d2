// Package compare tells differences between runs from noise. It compares saved runs, and trials, in which two
// settings take turns. It also searches for the highest load at which an objective holds, and checks assertions
// (gates). It does not start runs.
package compare

import (
	"cmp"
	"fmt"
	"math"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// These levels hold for a whole table. If a setting is compared with itself in 100 tables, about 5 of the tables
// show some difference.
const (
	familyAlpha = 0.05
	confidence  = 0.95
)

// effect says how a value differs from the value of the first side.
type effect string

// The effects.
const (
	none   effect = ""  // a value of the first side, or one that cannot be compared
	few    effect = "?" // too few runs to tell a difference from noise
	noise  effect = "~"
	Better effect = "better"
	Worse  effect = "worse"
)

// Class returns the name of a style: better, worse or plain.
func (e effect) Class() string {
	if e == Better || e == Worse {
		return string(e)
	}
	return "plain"
}

// words returns one of the three texts: nothing for no data, within for noise, and found for a difference.
func (e effect) words(nothing, within, found string) string {
	return cmp.Or(map[effect]string{none: nothing, few: tooFew, noise: within}[e], found)
}

// ratios explains the unit of a noise floor, which is the same for a change and for its reverse.
const ratios = "It counts ratios: ± 100 % is from half to double."

const tooFew = "not enough runs to say"

// gated converts the effect for assertions. These check themselves whether there are too few runs, so it returns
// noise instead of few.
func (e effect) gated() effect {
	if e == few {
		return noise
	}
	return e
}

// median returns the median of values and its confidence interval, computed from order statistics.
func median(values []float64, level float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), level)
}

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// change returns the difference of two values as a share of the first one: 0.1 = 10 % more.
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

// signedBeside formats a change with its sign, and with enough digits to show that it differs from a limit.
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
