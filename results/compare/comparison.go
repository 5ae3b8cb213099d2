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

// Comparison is a table. It has a row for each metric in each group of runs, and a cell for each side. A cell has
// the value of the side and its change from the first side.
type Comparison struct {
	Sides  []string     `json:"sides"`
	By     []string     `json:"by"`
	Groups []group      `json:"groups"`
	Notes  []string     `json:"notes"`
	Gates  []GateResult `json:"gates,omitempty"`

	labels []string // names of the sides, with the settings in which the sides differ
}

// group has runs that are compared with each other, such as those with the same topology.
type group struct {
	Name string `json:"name"`
	Rows []row  `json:"rows"`
}

type row struct {
	Metric string   `json:"metric"`
	Cells  []figure `json:"cells"` // one for each side
	metric results.Metric
}

// figure is the value of a metric for one side, the median of its runs.
type figure struct {
	Runs   int     `json:"runs"` // number of runs that have the metric
	Median float64 `json:"median"`
	// Low and High are the ends of the 95 % confidence interval of the median; null = too few runs.
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	P      float64  `json:"p"`      // p-value of the Mann-Whitney U test against the first side
	Change float64  `json:"change"` // difference from the first side, as a share of that side's value
	Effect effect   `json:"effect"`

	sample    *benchmath.Sample
	made      int           // number of runs, including those without the metric
	saturated bool          // the load generator was too slow in some run
	took      time.Duration // mean duration of a run
}

// New compares each side with the first one. Runs are grouped by the settings in the argument by. If it is empty,
// they are grouped by topology and lock, unless the sides differ in these.
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

// compare compares each side with the first one, in this metric.
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

// each calls f for every cell of the table, except those of the first side; k is the number of the side.
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

// decide tells differences from noise by Holm's procedure (1979), so that only 5 % of all tables have a false
// difference. It goes through the p-values in ascending order. A p-value must be at most 5 % divided by the number of
// tests that remain; decide stops at the first one that is greater.
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
		case t.Change == 0: // the medians are equal, although the distributions differ
		case t.Change > 0 == t.more:
			t.Effect = Better
		default:
			t.Effect = Worse
		}
	}
}

// enough adds a note if no difference could be found with so few runs. The note says how many runs each side needs.
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

// Undecided returns a text if no difference could be found with so few runs; otherwise it returns "".
func (c *Comparison) Undecided() string {
	undecided := tooFew
	c.each(func(_ *group, r *row, k int) {
		if e := r.Cells[k].Effect; e != none && e != few {
			undecided = ""
		}
	})
	return undecided
}

// runsNeeded returns the smallest number of runs of each side with which some difference can be found. The clearest
// difference is that all k runs of one side are better than all k of the other. Without a real difference, this
// happens in 2 of all ways to divide 2k runs. The argument is the number of tests in the table.
func runsNeeded(tests int) int {
	ways := 1.0
	for k := 1; ; k++ {
		ways = ways * float64(2*k) * float64(2*k-1) / float64(k*k)
		if 2/ways <= familyAlpha/float64(tests) {
			return k
		}
	}
}

// notes lists what limits the comparison: other settings that differ, failures, slow load generators, and sides that
// were not measured in turns.
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

// distinct returns the names, with a letter before each of them if two names are equal.
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

// labels returns the names of the sides, with the settings in which the sides differ.
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

// apart reports whether all runs of one side were made before all runs of the other side.
func apart(a, b []results.Run) bool {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) < 3 {
		return false
	}
	order := func(x, y results.Run) int { return x.Started.Compare(y.Started) }
	return slices.MaxFunc(a, order).Started.Before(slices.MinFunc(b, order).Started) ||
		slices.MaxFunc(b, order).Started.Before(slices.MinFunc(a, order).Started)
}

// CheckGates checks assertions about the changes from the first side to each other side. The noise floor follows
// from the confidence intervals of both medians, because no side was measured twice as in a Trial.
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
