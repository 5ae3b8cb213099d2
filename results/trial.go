package results

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// Arm is one of the three of a trial. The twin has the first arm's settings: what differs between these two is noise.
type Arm int

// The arms.
const (
	ArmA Arm = iota
	ArmB
	ArmTwin
	arms
)

// Schedule is the order of a trial's runs, three for each pair. Every other pair runs backwards what the one before
// it ran forwards (ABBA), so that a machine that gets steadily slower or faster favours nobody.
func Schedule(pairs int, seed uint64) (order []Arm) {
	random := rand.New(rand.NewPCG(seed, uint64(pairs)))
	var block []Arm
	for i := range pairs {
		if i%2 == 0 {
			block = []Arm{ArmA, ArmB, ArmTwin}
			random.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
		} else {
			slices.Reverse(block)
		}
		order = append(order, block...)
	}
	return order
}

// Pair is what ran side by side.
type Pair [arms]Run

// Trial is the outcome of a paired comparison of two settings.
type Trial struct {
	A       string       `json:"a"`
	B       string       `json:"b"`
	Pairs   int          `json:"pairs"`
	Effects []Contrast   `json:"effects"`
	Summary []string     `json:"summary"`
	Notes   []string     `json:"notes"`
	Gates   []GateResult `json:"gates,omitempty"`
}

// Contrast is what a trial says of one metric.
type Contrast struct {
	Metric string   `json:"metric"`
	Pairs  int      `json:"pairs"` // that say anything of it
	A      float64  `json:"a"`     // median
	B      float64  `json:"b"`
	Change *float64 `json:"change"` // median of B/A - 1 over the pairs
	Low    *float64 `json:"low"`    // of its confidence interval; null if the pairs are too few for one
	High   *float64 `json:"high"`
	Floor  *float64 `json:"noise_floor"` // how far the interval of twin/A reaches from no change
	Effect Effect   `json:"effect"`

	metric    Metric
	saturated bool // the generator, in most runs of an arm
}

// NewTrial compares the two settings. The intervals hold for all metrics at once (Bonferroni); a change counts if
// its interval leaves out no change and it is greater than what a thing shows against itself.
func NewTrial(a, b string, pairs []Pair, metrics []Metric) *Trial {
	t := &Trial{A: a, B: b, Pairs: len(pairs)}
	for _, m := range metrics {
		t.Effects = append(t.Effects, newContrast(m, pairs, 1-familyAlpha/float64(len(metrics))))
	}
	t.conclude()
	if need := pairsNeeded(len(metrics)); len(pairs) < need {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %d are needed to tell a difference from noise in %s at %.0f %%",
			human.Quantity(len(pairs), "pair"), need, human.Quantity(len(metrics), "metric"), 100*confidence))
	}
	for arm, name := range []string{a, b} {
		if n := saturatedRuns(pairs, Arm(arm)); n > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: the generator was saturated in %d of %d runs: their times are about this machine",
				name, n, len(pairs)))
		}
	}
	return t
}

func saturatedRuns(pairs []Pair, arm Arm) (n int) {
	for i := range pairs {
		if pairs[i][arm].Generator.State == Saturated {
			n++
		}
	}
	return n
}

// pairsNeeded is how many pairs are needed so that the widest interval, from the least difference to the greatest, has
// the confidence that n metrics together ask for.
func pairsNeeded(metrics int) int {
	n := 1
	for 2*math.Pow(0.5, float64(n)) > familyAlpha/float64(metrics) {
		n++
	}
	return n
}

// nothing is what a value of zero is taken for where two are divided, by unit: half of what can be told from it.
var nothing = map[Unit]float64{Number: 0.5, Share: 0.005, PerSecond: 0.5, Nanoseconds: 0.5}

func newContrast(m Metric, pairs []Pair, level float64) Contrast {
	most := len(pairs) / 2
	c := Contrast{Metric: m.Name, metric: m, saturated: saturatedRuns(pairs, ArmA) > most || saturatedRuns(pairs, ArmB) > most}
	var a, b, ab, aa []float64
	for i := range pairs {
		x, y, z := m.Of(&pairs[i][ArmA]), m.Of(&pairs[i][ArmB]), m.Of(&pairs[i][ArmTwin])
		if min(x.Support, y.Support, z.Support) < AtLeast {
			continue
		}
		a, b = append(a, x.Value), append(b, y.Value)
		ab = append(ab, m.ratio(x.Value, y.Value))
		aa = append(aa, m.ratio(x.Value, z.Value))
	}
	if c.Pairs = len(a); c.Pairs == 0 {
		return c
	}
	c.A, c.B, c.Effect = median(a, level).Center, median(b, level).Center, Noise
	change, twin := median(ab, level), median(aa, confidence)
	floor := max(math.Abs(twin.Lo), math.Abs(twin.Hi))
	c.Change, c.Floor = finite(math.Expm1(change.Center)), finite(math.Expm1(floor))
	if math.IsInf(change.Lo, 0) || math.IsInf(change.Hi, 0) {
		return c // too few pairs
	}
	c.Low, c.High = finite(math.Expm1(change.Lo)), finite(math.Expm1(change.Hi))
	if c.Floor == nil || change.Lo <= 0 && change.Hi >= 0 || math.Abs(change.Center) <= floor {
		return c
	}
	c.Effect = Worse
	if change.Center > 0 == m.More {
		c.Effect = Better
	}
	return c
}

// median is a sample's with the interval of order statistics that holds it at the given level.
func median(values []float64, level float64) benchmath.Summary {
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), level)
}

// ratio is the logarithm of to/from.
func (m Metric) ratio(from, to float64) float64 {
	if to == from {
		return 0
	}
	some := func(x float64) float64 {
		if x <= 0 {
			return nothing[m.Unit]
		}
		return x
	}
	return math.Log(some(to) / some(from))
}

// conclude says which side is better in what, and whether one of them dominates.
func (t *Trial) conclude() {
	facets := map[Effect][]string{}
	for _, effect := range []Effect{Better, Worse} {
		for _, facet := range []Facet{Fair, Patience, Expense, Speed, Work, Accident} {
			var details []string
			for _, c := range t.Effects {
				if c.Effect == effect && c.metric.Facet == facet {
					details = append(details, fmt.Sprintf("%s %s against %s", c.Metric, c.metric.Format(c.of(effect)), c.metric.Format(c.against(effect))))
				}
			}
			if len(details) > 0 {
				facets[effect] = append(facets[effect], fmt.Sprintf("%s (%s)", facet, strings.Join(details, ", ")))
			}
		}
	}
	if b := facets[Better]; len(b) > 0 {
		t.Summary = append(t.Summary, t.B+" is "+strings.Join(b, " and "))
	}
	if a := facets[Worse]; len(a) > 0 {
		t.Summary = append(t.Summary, t.A+" is "+strings.Join(a, " and "))
	}
	switch {
	case len(facets[Better]) > 0 && len(facets[Worse]) > 0:
		t.Summary = append(t.Summary, "neither dominates the other")
	case len(facets[Better]) > 0:
		t.Summary = append(t.Summary, t.B+" dominates: better in these, no worse in the rest as far as noise lets tell")
	case len(facets[Worse]) > 0:
		t.Summary = append(t.Summary, t.A+" dominates: better in these, no worse in the rest as far as noise lets tell")
	default:
		t.Summary = append(t.Summary, "no difference that is more than noise")
	}
}

// of is the value of the side that an effect is good for, against that of the other.
func (c *Contrast) of(e Effect) float64 {
	if e == Better {
		return c.B
	}
	return c.A
}

func (c *Contrast) against(e Effect) float64 {
	if e == Better {
		return c.A
	}
	return c.B
}
