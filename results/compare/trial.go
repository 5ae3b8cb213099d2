package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// Arm is one of the three settings that take turns in a trial: A, B and twin. The twin is the same setting as A, so
// a difference between A and twin is noise.
type Arm int

const (
	ArmA Arm = iota
	ArmB
	ArmTwin
	arms
)

// Schedule returns the order of a trial's runs, three for each pair. Every second pair has the reverse order of the
// one before it. So no arm gains if the machine gradually becomes faster or slower.
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

// Pair has one run of each arm; the three runs were made one after another.
type Pair [arms]results.Run

type Trial struct {
	A       string       `json:"a"`
	B       string       `json:"b"`
	Pairs   int          `json:"pairs"`
	Effects []contrast   `json:"effects"`
	Summary []string     `json:"summary"`
	Notes   []string     `json:"notes"`
	Gates   []GateResult `json:"gates,omitempty"`

	backoffs [2]string     // backoffs of A and B, as text
	each     time.Duration // mean duration of a pair
}

type contrast struct {
	Metric string   `json:"metric"`
	Pairs  int      `json:"pairs"` // number of pairs in which all three runs have the metric
	A      float64  `json:"a"`     // median
	B      float64  `json:"b"`
	Change *float64 `json:"change"` // median of B/A - 1 over the pairs
	Low    *float64 `json:"low"`    // lower end of its confidence interval; null = too few pairs
	High   *float64 `json:"high"`
	// Floor is the noise floor: how far from 0 the confidence interval of twin/A - 1 reaches.
	Floor  *float64 `json:"noise_floor"`
	Effect effect   `json:"effect"`

	metric    results.Metric
	values    [2][]float64 // values of the runs of A and of B
	saturated bool         // the load generator was too slow in most runs of A or of B
}

// NewTrial compares two settings. The confidence intervals hold for all metrics together (Bonferroni). A change is
// more than noise if its interval does not contain 0 and it exceeds the noise floor.
func NewTrial(a, b string, pairs []Pair, metrics []results.Metric) *Trial {
	t := &Trial{A: a, B: b, Pairs: len(pairs)}
	for i := range pairs {
		for arm := range pairs[i] {
			t.each += time.Duration(pairs[i][arm].Took) / time.Duration(len(pairs))
		}
		for side := range t.backoffs {
			if r := &pairs[i][side]; r.Retry > 0 && !r.Unseen() {
				t.backoffs[side] = "  (backoff " + human.Duration(time.Duration(r.Retry)) + ")"
			}
		}
	}
	for _, m := range metrics {
		t.Effects = append(t.Effects, newContrast(m, pairs, 1-familyAlpha/float64(len(metrics))))
	}
	t.conclude()
	if need := PairsNeeded(len(metrics)); len(pairs) < need {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %d are needed to tell a difference from noise in %s at %.0f %%",
			human.Quantity(len(pairs), "pair"), need, human.Quantity(len(metrics), "metric"), 100*confidence))
	}
	for _, c := range t.Effects {
		if 0 < c.Pairs && c.Pairs < t.Pairs {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d of %s have it in all three runs; the others are left out",
				c.Metric, c.Pairs, human.Quantity(t.Pairs, "pair")))
		}
	}
	for arm, name := range t.sides() {
		if n := saturatedRuns(pairs, Arm(arm)); n > 0 {
			t.Notes = append(t.Notes,
				fmt.Sprintf("%s: the generator was saturated or disturbed in %d of %d runs: their times measure "+
					"this machine",
					name, n, len(pairs)))
		}
	}
	return t
}

func saturatedRuns(pairs []Pair, arm Arm) (n int) {
	for i := range pairs {
		if pairs[i][arm].Generator.State.Unfit() {
			n++
		}
	}
	return n
}

// PairsNeeded returns the smallest number of pairs with which a difference can be found, for n metrics. With fewer
// pairs no confidence interval exists: even from the smallest to the largest change, the confidence is too low.
func PairsNeeded(metrics int) int {
	n := 1
	for 2*math.Pow(0.5, float64(n)) > familyAlpha/float64(metrics) {
		n++
	}
	return n
}

func newContrast(m results.Metric, pairs []Pair, level float64) contrast {
	most := len(pairs) / 2
	c := contrast{Metric: m.Name, metric: m, saturated: saturatedRuns(pairs, ArmA) > most ||
		saturatedRuns(pairs, ArmB) > most}
	var a, b, ab, aa []float64
	for i := range pairs {
		x, y, z := m.Of(&pairs[i][ArmA]), m.Of(&pairs[i][ArmB]), m.Of(&pairs[i][ArmTwin])
		if min(x.Support, y.Support, z.Support) < results.AtLeast {
			continue
		}
		a, b = append(a, x.Value), append(b, y.Value)
		ab = append(ab, ratio(x.Value, y.Value, m.Least()))
		aa = append(aa, ratio(x.Value, z.Value, m.Least()))
	}
	if c.Pairs = len(a); c.Pairs == 0 {
		return c
	}
	c.values = [2][]float64{a, b}
	c.A, c.B, c.Effect = median(a, level).Center, median(b, level).Center, noise
	change, twin := median(ab, level), median(aa, confidence)
	floor := max(math.Abs(twin.Lo), math.Abs(twin.Hi))
	c.Change, c.Floor = finite(math.Expm1(change.Center)), finite(math.Expm1(floor))
	if math.IsInf(change.Lo, 0) || math.IsInf(change.Hi, 0) {
		c.Effect = few
		return c
	}
	c.Low, c.High = finite(math.Expm1(change.Lo)), finite(math.Expm1(change.Hi))
	if c.Floor == nil || c.contradicted() || change.Lo <= 0 && change.Hi >= 0 || math.Abs(change.Center) <= floor {
		return c
	}
	c.Effect = Worse
	if change.Center > 0 == m.More {
		c.Effect = Better
	}
	return c
}

// contradicted reports whether two estimates of the change have different signs: the difference of the medians of A
// and B, and the median of the changes in the pairs. Then the sign of the change is unreliable.
func (c *contrast) contradicted() bool { return c.Change != nil && *c.Change*(c.B-c.A) < 0 }

// ratio returns the logarithm of to/from. The argument least replaces values that are not positive.
func ratio(from, to, least float64) float64 {
	if to == from {
		return 0
	}
	positive := func(x float64) float64 {
		if x <= 0 {
			return least
		}
		return x
	}
	return math.Log(positive(to) / positive(from))
}

// sides returns the names of A and B.
func (t *Trial) sides() []string { return distinct([]string{t.A, t.B}) }

// conclude writes the summary: in which qualities each side is better, and whether one side is worse in none.
func (t *Trial) conclude() {
	b, a := t.facets(Better), t.facets(Worse)
	sides := t.sides()
	if b != "" {
		t.Summary = append(t.Summary, sides[1]+" is "+b)
	}
	if a != "" {
		t.Summary = append(t.Summary, sides[0]+" is "+a)
	}
	const dominates = " dominates: better in these, and no worse in the others beyond noise"
	switch {
	case a != "" && b != "":
		t.Summary = append(t.Summary, "neither dominates the other")
	case b != "":
		t.Summary = append(t.Summary, sides[1]+dominates)
	case a != "":
		t.Summary = append(t.Summary, sides[0]+dominates)
	case t.Undecided() != "":
		t.Summary = append(t.Summary, t.Undecided())
	default:
		t.Summary = append(t.Summary, "no difference that is more than noise")
	}
}

// Undecided returns a text if no difference could be found with so few pairs; otherwise it returns "".
func (t *Trial) Undecided() string {
	for _, c := range t.Effects {
		if c.Effect != none && c.Effect != few {
			return ""
		}
	}
	return tooFew
}

// facets lists the qualities in which one side is better: B for the effect Better, A for Worse.
func (t *Trial) facets(e effect) string {
	var all []string
	for _, facet := range results.Facets {
		var details []string
		for _, c := range t.Effects {
			if c.Effect != e || c.metric.Facet != facet {
				continue
			}
			better, other := c.B, c.A
			if e == Worse {
				better, other = c.A, c.B
			}
			details = append(details, fmt.Sprintf("%s %s against %s", c.Metric, c.metric.Format(better),
				c.metric.Format(other)))
		}
		if len(details) > 0 {
			all = append(all, fmt.Sprintf("%s (%s)", facet, strings.Join(details, ", ")))
		}
	}
	return strings.Join(all, " and ")
}

func (t *Trial) CheckGates(gates []ChangeGate) {
	var all []difference
	for _, c := range t.Effects {
		d := difference{metric: c.metric, runs: c.Pairs, made: t.Pairs, effect: c.Effect.gated(),
			saturated: c.saturated,
			low:       math.Inf(-1), high: math.Inf(1), floor: math.Inf(1),
			least: PairsNeeded(len(t.Effects)), unit: "pairs (--pairs)", each: t.each}
		if c.Change != nil {
			d.change = *c.Change
		}
		if c.Low != nil && c.High != nil && c.Floor != nil {
			d.low, d.high, d.floor = *c.Low, *c.High, *c.Floor
		}
		all = append(all, d)
	}
	t.Gates = append(t.Gates, checkAll(gates, all)...)
}
