package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"hammerlock/internal/human"
)

// The significance that comparisons ask for. It is that of a whole table: five tables in a hundred that compare a
// thing with itself show a difference, not five numbers in a hundred.
const (
	familyAlpha = 0.05
	confidence  = 0.95
)

// Side is what is compared: repeated runs under a name.
type Side struct {
	Name string
	Runs []Run
}

// Comparison is a table: for each group of runs and each metric, what every side says and whether it differs from
// the first.
type Comparison struct {
	Sides  []string     `json:"sides"`
	By     []string     `json:"by"`
	Groups []Group      `json:"groups"`
	Notes  []string     `json:"notes"`
	Gates  []GateResult `json:"gates,omitempty"`
}

// Group is what is compared with each other, as the runs of one topology.
type Group struct {
	Name string `json:"name"`
	Rows []Row  `json:"rows"`
}

// Row is one metric.
type Row struct {
	Metric string   `json:"metric"`
	Cells  []Figure `json:"cells"` // one a side
	metric Metric
}

// Figure is what one side says of a metric.
type Figure struct {
	Runs   int      `json:"runs"` // that say anything of it
	Median float64  `json:"median"`
	Low    *float64 `json:"low"` // of the median's 95 % confidence interval; null if the runs are too few for one
	High   *float64 `json:"high"`
	P      float64  `json:"p"`      // Mann-Whitney U test against the first side
	Change float64  `json:"change"` // share of the first side
	Effect Effect   `json:"effect"`

	sample    *benchmath.Sample
	saturated bool // the generator of one of the runs
}

// Effect is what a difference comes to.
type Effect string

// The effects. Noise is also what too few runs show.
const (
	None   Effect = "" // the first side, or nothing to compare
	Noise  Effect = "~"
	Better Effect = "better"
	Worse  Effect = "worse"
)

// Groupings are the keys that runs can be grouped by.
var Groupings = []struct {
	Name string
	of   func(*Run) string
}{
	{"topology", func(r *Run) string { return r.Topology }},
	{"lock", func(r *Run) string { return r.Lock }},
	{"workers", func(r *Run) string { return fmt.Sprint(r.Workers) + " workers" }},
	{"keys", func(r *Run) string { return human.Quantity(r.Keys, "page") }},
	{"counter", func(r *Run) string { return r.Counter }},
	{"faults", func(r *Run) string { return human.List(r.Faults) }},
}

// Compare compares every side with the first. Runs are grouped by the named keys; without any, by topology and
// lock as far as the sides agree in them.
func Compare(sides []Side, by []string, metrics []Metric) *Comparison {
	if len(by) == 0 {
		by = agreement(sides)
	}
	c := &Comparison{By: by}
	names, grouped := groupSides(sides, by)
	for _, s := range sides {
		c.Sides = append(c.Sides, s.Name)
	}
	for _, name := range names {
		g := Group{Name: name}
		for _, m := range metrics {
			row := Row{Metric: m.Name, metric: m}
			for i := range sides {
				row.Cells = append(row.Cells, newFigure(m, grouped[name][i]))
			}
			row.compare()
			g.Rows = append(g.Rows, row)
		}
		c.Groups = append(c.Groups, g)
	}
	c.decide()
	c.Notes = notes(sides, by)
	c.enough()
	return c
}

// agreement is those of topology and lock in which all sides have the same.
func agreement(sides []Side) (by []string) {
	for _, g := range Groupings[:2] {
		same := true
		for _, s := range sides[1:] {
			same = same && slices.Equal(values(sides[0], g.of), values(s, g.of))
		}
		if same {
			by = append(by, g.Name)
		}
	}
	return by
}

func values(s Side, of func(*Run) string) (all []string) {
	for i := range s.Runs {
		all = append(all, of(&s.Runs[i]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// groupSides sorts runs into groups; each has a list of runs for every side.
func groupSides(sides []Side, by []string) (names []string, groups map[string][][]*Run) {
	groups = map[string][][]*Run{}
	for i := range sides {
		for j := range sides[i].Runs {
			r := &sides[i].Runs[j]
			var parts []string
			for _, g := range Groupings {
				if slices.Contains(by, g.Name) {
					parts = append(parts, g.of(r))
				}
			}
			name := strings.Join(parts, " ")
			if groups[name] == nil {
				names = append(names, name)
				groups[name] = make([][]*Run, len(sides))
			}
			groups[name][i] = append(groups[name][i], r)
		}
	}
	return names, groups
}

// newFigure summarizes what runs say of a metric.
func newFigure(m Metric, runs []*Run) Figure {
	var values []float64
	c := Figure{P: 1}
	for _, r := range runs {
		c.saturated = c.saturated || r.Generator.State == Saturated
		if x := m.Of(r); x.Support >= AtLeast {
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

func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// compare tests every side against the first.
func (r *Row) compare() {
	first := &r.Cells[0]
	for i := range r.Cells[1:] {
		c := &r.Cells[i+1]
		if c.Runs == 0 || first.Runs == 0 {
			continue
		}
		c.Effect = Noise
		if p := benchmath.AssumeNothing.Compare(first.sample, c.sample).P; !math.IsNaN(p) {
			c.P = p
		}
		c.Change = change(first.Median, c.Median)
	}
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

// decide tells differences from noise, with the procedure of Holm (1979) over all tests of the table: the p-values
// ascending, each against alpha by the number of those that are left, until one is not small enough.
func (c *Comparison) decide() {
	type test struct {
		cell *Figure
		more bool
	}
	var tests []test
	for i := range c.Groups {
		for j := range c.Groups[i].Rows {
			row := &c.Groups[i].Rows[j]
			for k := range row.Cells[1:] {
				if cell := &row.Cells[k+1]; cell.Effect == Noise {
					tests = append(tests, test{cell, row.metric.More})
				}
			}
		}
	}
	slices.SortFunc(tests, func(a, b test) int {
		switch {
		case a.cell.P < b.cell.P:
			return -1
		case a.cell.P > b.cell.P:
			return 1
		}
		return 0
	})
	for i, t := range tests {
		if t.cell.P > familyAlpha/float64(len(tests)-i) {
			return
		}
		switch {
		case t.cell.Change == 0: // the distributions differ, their medians do not
		case t.cell.Change > 0 == t.more:
			t.cell.Effect = Better
		default:
			t.cell.Effect = Worse
		}
	}
}

// enough says how many runs a side would need so that a difference can be seen at all.
func (c *Comparison) enough() {
	tests, fewest := 0, math.MaxInt
	for _, g := range c.Groups {
		for _, r := range g.Rows {
			for _, cell := range r.Cells[1:] {
				if cell.Effect != None {
					tests++
					fewest = min(fewest, cell.Runs, r.Cells[0].Runs)
				}
			}
		}
	}
	if tests == 0 {
		c.Notes = append(c.Notes, "the sides have nothing in common that could be compared")
		return
	}
	if need := runsNeeded(tests); fewest < need {
		c.Notes = append(c.Notes, fmt.Sprintf("%s a side: %d are needed to tell a difference from noise in %s at %.0f %%; "+
			"more runs (--count), or fewer numbers (--show)", human.Quantity(fewest, "run"), need, human.Quantity(tests, "comparison"), 100*confidence))
	}
}

// runsNeeded is how many runs a side the U test needs to find the clearest of differences in one of n tests: of
// all ways to divide 2k runs in two, two are as clear as that.
func runsNeeded(tests int) int {
	ways := 1.0
	for k := 1; ; k++ {
		ways = ways * float64(2*k) * float64(2*k-1) / float64(k*k)
		if 2/ways <= familyAlpha/float64(tests) {
			return k
		}
	}
}

// notes says what else differs between the sides, and when the order of the runs could be taken for a difference.
func notes(sides []Side, by []string) (all []string) {
	for _, f := range configuration {
		if slices.Contains(by, f.name) {
			continue
		}
		var texts []string
		same := true
		for _, s := range sides {
			v := values(s, f.of)
			same = same && slices.Equal(v, values(sides[0], f.of))
			texts = append(texts, strings.Join(v, ", "))
		}
		if !same {
			all = append(all, "differs: "+f.name+": "+strings.Join(texts, " | "))
		}
	}
	for _, s := range sides {
		for i := range s.Runs {
			if r := &s.Runs[i]; r.Generator.State == Saturated {
				all = append(all, s.Name+": the generator was saturated: its times are about this machine")
				break
			}
		}
		for i := range s.Runs {
			if s.Runs[i].Partial != "" {
				all = append(all, s.Name+": a run ended early")
				break
			}
		}
	}
	for _, s := range sides[1:] {
		if apart(sides[0].Runs, s.Runs) {
			all = append(all, fmt.Sprintf("the runs of %s and %s were not made in turns: what else changed on the machine in between "+
				"looks like a difference (bench ab takes turns)", sides[0].Name, s.Name))
			break
		}
	}
	return all
}

// configuration is what two runs that are compared should have in common.
var configuration = []struct {
	name string
	of   func(*Run) string
}{
	{"topology", func(r *Run) string { return r.Topology }},
	{"lock", func(r *Run) string { return r.Lock }},
	{"load", func(r *Run) string {
		load, _, _ := strings.Cut(r.Workload(), " each")
		return load
	}},
	{"processes", func(r *Run) string { return fmt.Sprint(r.Processes) }},
	{"counter", func(r *Run) string { return r.Counter }},
	{"faults", func(r *Run) string { return human.List(r.Faults) }},
	{"server", func(r *Run) string { return r.Settings["server"] }},
	{"suite", func(r *Run) string { return r.Environment.Suite }},
	{"machine", func(r *Run) string { return fmt.Sprintf("%s, %d cores", r.Environment.CPU, r.Environment.Cores) }},
}

// apart tells whether all runs of one side were made before those of the other.
func apart(a, b []Run) bool {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) < 3 {
		return false
	}
	order := func(x, y Run) int { return x.Started.Compare(y.Started) }
	firstA, lastA := slices.MinFunc(a, order), slices.MaxFunc(a, order)
	firstB, lastB := slices.MinFunc(b, order), slices.MaxFunc(b, order)
	return lastA.Started.Before(firstB.Started) || lastB.Started.Before(firstA.Started)
}
