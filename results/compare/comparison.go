package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// Comparison is a table. For each group of runs and each metric it has a value for each side, and the difference of
// that value from the first side's.
type Comparison struct {
	Sides  []string     `json:"sides"`
	By     []string     `json:"by"`
	Groups []group      `json:"groups"`
	Notes  []string     `json:"notes"`
	Gates  []GateResult `json:"gates,omitempty"`

	labels []string // names of the sides, with the settings in which they differ
}

// group is a set of runs that are compared with each other, such as those of one topology.
type group struct {
	Name string `json:"name"`
	Rows []row  `json:"rows"`
}

type row struct {
	Metric string   `json:"metric"`
	Cells  []figure `json:"cells"` // one for each side
	metric results.Metric
}

// figure is the value of a metric for one side.
type figure struct {
	Runs   int     `json:"runs"` // number of runs that have the metric
	Median float64 `json:"median"`
	// lower end of the 95 % confidence interval of the median; null if there are too few runs
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	P      float64  `json:"p"`      // p-value of the Mann-Whitney U test against the first side
	Change float64  `json:"change"` // difference from the first side, as a share of the first side's value
	Effect effect   `json:"effect"`

	sample    *benchmath.Sample
	made      int           // number of runs, with those that lack the metric
	saturated bool          // the load generator was too slow in one of the runs
	took      time.Duration // mean duration of a run
}

// New compares every side with the first one. The argument by lists the settings by which runs are grouped; by default
// topology and lock, without those in which the sides differ.
func New(sides []Side, by []string, metrics []results.Metric) *Comparison {
	if len(by) == 0 {
		by = agreement(sides)
	}
	sides = slices.Clone(sides)
	for i, name := range distinct(sideNames(sides)) {
		sides[i].Name = name
	}
	c := &Comparison{By: by, Sides: sideNames(sides)}
	names, grouped := groupSides(sides, by)
	for _, name := range names {
		g := group{Name: name}
		for _, m := range metrics {
			r := row{Metric: m.Name, metric: m}
			for i := range sides {
				r.Cells = append(r.Cells, newFigure(m, grouped[name][i]))
			}
			r.compare()
			g.Rows = append(g.Rows, r)
		}
		c.Groups = append(c.Groups, g)
	}
	c.decide()
	c.Notes, c.labels = notes(sides, by), labels(sides, by)
	c.enough()
	return c
}

func newFigure(m results.Metric, runs []*results.Run) figure {
	var values []float64
	c := figure{P: 1, made: len(runs)}
	for _, r := range runs {
		c.took += time.Duration(r.Took) / time.Duration(len(runs))
		c.saturated = c.saturated || r.Generator.State.Unfit()
		if x := m.Of(r); x.Support >= results.AtLeast {
			values = append(values, x.Value)
		}
	}
	c.Runs = len(values)
	if len(values) == 0 {
		return c
	}
	c.sample = benchmath.NewSample(values, &benchmath.DefaultThresholds)
	s := benchmath.AssumeNothing.Summary(c.sample, confidence)
	c.Median, c.Low, c.High = s.Center, finite(s.Lo), finite(s.Hi)
	return c
}

// compare compares each side with the first one.
func (r *row) compare() {
	first := &r.Cells[0]
	for i := range r.Cells[1:] {
		c := &r.Cells[i+1]
		if c.Runs == 0 || first.Runs == 0 {
			continue
		}
		c.Effect = noise
		if p := benchmath.AssumeNothing.Compare(first.sample, c.sample).P; !math.IsNaN(p) {
			c.P = p
		}
		c.Change = change(first.Median, c.Median)
	}
}

// each calls f for every cell except those of the first side.
func (c *Comparison) each(f func(g *group, r *row, k int)) {
	for i := range c.Groups {
		for j := range c.Groups[i].Rows {
			r := &c.Groups[i].Rows[j]
			for k := range r.Cells[1:] {
				f(&c.Groups[i], r, k+1)
			}
		}
	}
}

// decide separates differences from noise, with Holm's procedure (1979) over all tests of the table. It compares the
// p-values, in ascending order, with alpha divided by the number of remaining tests. It stops at the first one that is
// too large.
func (c *Comparison) decide() {
	type test struct {
		*figure
		more bool
	}
	var tests []test
	c.each(func(_ *group, r *row, k int) {
		if r.Cells[k].Effect == noise {
			tests = append(tests, test{&r.Cells[k], r.metric.More})
		}
	})
	slices.SortFunc(tests, func(a, b test) int { return cmp.Compare(a.P, b.P) })
	for i, t := range tests {
		if t.P > familyAlpha/float64(len(tests)-i) {
			return
		}
		switch {
		case t.Change == 0: // the distributions differ, but not their medians
		case t.Change > 0 == t.more:
			t.Effect = Better
		default:
			t.Effect = Worse
		}
	}
}

// enough adds a note if there are too few runs to find any difference. The note says how many runs each side needs.
func (c *Comparison) enough() {
	tests, fewest := 0, math.MaxInt
	c.each(func(_ *group, r *row, k int) {
		if r.Cells[k].Effect != none {
			tests++
			fewest = min(fewest, r.Cells[k].Runs, r.Cells[0].Runs)
		}
	})
	if tests == 0 {
		c.Notes = append(c.Notes, "the sides have no data in common")
	} else if need := runsNeeded(tests); fewest < need {
		c.each(func(_ *group, r *row, k int) {
			if cell := &r.Cells[k]; cell.Effect == noise && min(cell.Runs, r.Cells[0].Runs) < need {
				cell.Effect = few
			}
		})
		c.Notes = append(c.Notes,
			fmt.Sprintf("%s a side: %d are needed to tell a difference from noise in %s at %.0f %%; "+
				"more runs (--count), or fewer numbers (--show)", human.Quantity(fewest, "run"), need,
				human.Quantity(tests, "comparison"), 100*confidence))
	}
}

// Undecided returns a text if there are too few runs to find any difference; else it is empty.
func (c *Comparison) Undecided() string {
	undecided := tooFew
	c.each(func(_ *group, r *row, k int) {
		if e := r.Cells[k].Effect; e != none && e != few {
			undecided = ""
		}
	})
	return undecided
}

// runsNeeded returns the smallest number of runs of each side with which the U test can find the clearest possible
// difference. The argument is the number of tests in the table. Only 2 of all ways to choose k of 2k runs are so clear.
func runsNeeded(tests int) int {
	ways := 1.0
	for k := 1; ; k++ {
		ways = ways * float64(2*k) * float64(2*k-1) / float64(k*k)
		if 2/ways <= familyAlpha/float64(tests) {
			return k
		}
	}
}

// notes lists other settings in which the sides differ, failures, and whether the order of the runs may explain a
// difference.
func notes(sides []Side, by []string) (all []string) {
	for _, p := range properties {
		if texts, same := p.ofAll(sides); !same && p.use&note != 0 && !slices.Contains(by, p.name) {
			all = append(all, "differs: "+p.name+": "+strings.Join(texts, " | "))
		}
	}
	for i := range sides {
		if text := failures(&sides[i]); text != "" {
			all = append(all, text)
		}
	}
	for _, s := range sides {
		if slices.ContainsFunc(s.Runs, func(r results.Run) bool { return r.Generator.State.Unfit() }) {
			all = append(all, s.Name+": the generator was saturated or disturbed: its times measure this machine")
		}
		if slices.ContainsFunc(s.Runs, func(r results.Run) bool { return r.Partial != "" }) {
			all = append(all, s.Name+": a run ended early")
		}
	}
	for _, s := range sides[1:] {
		if names := runNames(&s); len(names) > 0 && slices.Equal(runNames(&sides[0]), names) {
			all = append(all, fmt.Sprintf("%s and %s are the same runs", sides[0].Name, s.Name))
		}
		if apart(sides[0].Runs, s.Runs) {
			return append(all,
				fmt.Sprintf("the runs of %s and %s were not made in turns: what else changed on the machine in "+
					"between "+
					"looks like a difference (bench ab takes turns)", sides[0].Name, s.Name))
		}
	}
	return all
}

func runNames(s *Side) []string {
	return human.Names(s.Runs, func(r results.Run) string { return r.Name })
}

// distinct puts letters before the names of sides if two of them have the same name.
func distinct(names []string) []string {
	if len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
		return names
	}
	all := slices.Clone(names)
	for i := range all {
		all[i] = fmt.Sprintf("%c: %s", 'A'+i, all[i])
	}
	return all
}

func sideNames(sides []Side) []string {
	return human.Names(sides, func(s Side) string { return s.Name })
}

// labels returns the names of the sides, each with the settings in which the sides differ.
func labels(sides []Side, by []string) []string {
	all := sideNames(sides)
	for _, p := range properties {
		texts, same := p.ofAll(sides)
		for i := range all {
			if !same && p.use&key != 0 && !slices.Contains(by, p.name) && !strings.Contains(all[i], texts[i]) {
				all[i] += " (" + texts[i] + ")"
			}
		}
	}
	return all
}

// apart tells whether all runs of one side were made before all runs of the other.
func apart(a, b []results.Run) bool {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) < 3 {
		return false
	}
	order := func(x, y results.Run) int { return x.Started.Compare(y.Started) }
	return slices.MaxFunc(a, order).Started.Before(slices.MinFunc(b, order).Started) ||
		slices.MaxFunc(b, order).Started.Before(slices.MinFunc(a, order).Started)
}

// CheckGates checks assertions about the change from the first side to every other side. No side is compared with
// itself, so the noise floor is computed from the confidence intervals of both sides.
func (c *Comparison) CheckGates(gates []ChangeGate) {
	var all []difference
	tests := 0
	c.each(func(*group, *row, int) { tests++ })
	c.each(func(g *group, r *row, k int) {
		d := r.difference(k)
		d.least = runsNeeded(tests)
		d.about = strings.TrimSuffix(c.Sides[k]+" "+g.Name, " ")
		all = append(all, d)
	})
	c.Gates = append(c.Gates, checkAll(gates, all)...)
}

func (r *row) difference(k int) difference {
	first, cell := &r.Cells[0], &r.Cells[k]
	d := difference{metric: r.metric, runs: min(first.Runs, cell.Runs), effect: cell.Effect.gated(),
		made:   max(first.made, cell.made),
		change: cell.Change,
		low:    math.Inf(-1), high: math.Inf(1), floor: math.Inf(1), saturated: cell.saturated || first.saturated,
		unit: "runs a side (--count)", each: first.took + cell.took}
	switch {
	case first.Low != nil && cell.Low != nil && first.Median != 0:
		d.low, d.high = change(*first.High, *cell.Low), change(*first.Low, *cell.High)
		d.floor = max(d.change-d.low, d.high-d.change)
	case cell.Effect.gated() == noise && first.Runs > 0 && first.Median == 0 && cell.Median == 0:
		d.low, d.high, d.floor = 0, 0, 0
	}
	return d
}
