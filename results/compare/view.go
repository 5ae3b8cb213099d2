package compare

import (
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// View is a comparison in the form in which an HTML page or a pull request shows it.
type View struct {
	Title   string
	Failed  string // safety property that failed in some run; empty = none
	Sides   []string
	Tables  []Table
	Summary []string
	Notes   []string
	Gates   []GateResult
	Method  string // how differences were told from noise
	Command string // the command that repeats the comparison
}

// Table compares the runs of one group, such as those with the same topology.
type Table struct {
	Name string
	Rows []Row
}

type Row struct {
	Metric, Says string
	Cells        []Cell // one for each side
}

// Cell is the value of a metric for one side, and the change from the first side.
type Cell struct {
	Side, Value, Verdict, Sign    string // Verdict is in words, because a sign alone is not enough
	Values                        []float64
	Median                        float64
	Low, High                     *float64 // ends of the confidence interval of the median
	Change, From, To, Noise       *float64 // shares; nil = unknown
	ChangeText, Interval, Floored string
	Effect                        effect
}

var signs = map[effect]string{few: "?", noise: "~", Better: "✓", Worse: "✕"}

// explain sets the texts of the change. A text is "-" if the change is unknown, as for the first side.
func (c *Cell) explain() {
	c.Sign, c.ChangeText, c.Interval, c.Floored = signs[c.Effect], "-", "-", "-"
	if c.Change != nil {
		c.ChangeText = whole(*c.Change)
	}
	if c.From != nil && c.To != nil {
		c.Interval = whole(*c.From) + " .. " + whole(*c.To)
	}
	if c.Noise != nil {
		c.Floored = "± " + strings.TrimPrefix(whole(*c.Noise), "+")
	}
}

// View returns the comparison in the form for pages.
func (c *Comparison) View() *View {
	v := &View{Title: strings.Join(c.labels, " · "), Sides: c.labels, Notes: c.Notes, Gates: c.Gates,
		Method: fmt.Sprintf("Medians with their %.0f %% confidence intervals. A change is more than noise if a "+
			"Mann-Whitney U test says so, "+
			"with %.0f %% for all rows of the page (Holm). The interval of a change is the widest that those of "+
			"both medians leave.", 100*confidence, 100*familyAlpha)}
	for i := range c.Groups {
		t := Table{Name: strings.TrimSpace(c.Groups[i].Name)}
		for _, r := range c.Groups[i].Rows {
			row := Row{Metric: r.Metric, Says: r.metric.Direction()}
			for k := range r.Cells {
				row.Cells = append(row.Cells, r.cell(k, c.labels[k]))
			}
			t.Rows = append(t.Rows, row)
		}
		v.Tables = append(v.Tables, t)
	}
	for k, side := range c.labels[1:] {
		v.Summary = append(v.Summary, c.count(k+1, side))
	}
	return v
}

// cell returns the value of side k in this row.
func (r *row) cell(k int, side string) Cell {
	f := &r.Cells[k]
	x := Cell{Side: side, Value: f.text(r.metric), Effect: f.Effect, Median: f.Median, Low: f.Low, High: f.High}
	if f.sample != nil {
		x.Values = f.sample.Values
	}
	if k > 0 {
		x.Verdict = f.Effect.words("no data", fmt.Sprintf("noise (p=%.3f)", f.P),
			fmt.Sprintf("%s (p=%.3f)", f.Effect, f.P))
		if d := r.difference(k); f.Effect != none {
			x.Change, x.From, x.To = finite(f.Change), finite(d.low), finite(d.high)
		}
	}
	x.explain()
	return x
}

// count returns a sentence that names the metrics in which side k differs from the first side.
func (c *Comparison) count(k int, side string) string {
	found := map[effect][]string{}
	c.each(func(g *group, r *row, at int) {
		if e := r.Cells[at].Effect; at == k {
			found[e] = append(found[e], strings.TrimSpace(r.Metric+" "+g.Name))
		}
	})
	var parts []string
	for _, e := range []effect{Worse, Better} {
		if n := len(found[e]); n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", e, strings.Join(found[e], ", ")))
		}
	}
	switch {
	case len(parts) > 0:
		return side + " is " + strings.Join(parts, ", and ") + " (against " + c.labels[0] + ")"
	case len(found[few]) > 0:
		return side + ": " + tooFew
	default:
		return side + " shows no difference from " + c.labels[0] + " that is more than noise"
	}
}

// View returns the trial in the form for pages.
func (t *Trial) View() *View {
	sides := t.sides()
	v := &View{Title: strings.Join(sides, " · "), Sides: sides, Summary: t.Summary, Notes: t.Notes, Gates: t.Gates,
		Method: fmt.Sprintf("%s in turns. The noise floor is what the first side shows against itself in turns with "+
			"the second. %s "+
			"The intervals hold for all rows at once (%.0f %%).", human.Quantity(t.Pairs, "pair"), ratios,
			100*confidence)}
	table := Table{}
	for i := range t.Effects {
		table.Rows = append(table.Rows, t.Effects[i].row(sides))
	}
	v.Tables = []Table{table}
	return v
}

// row returns the row of this metric in the table.
func (c *contrast) row(sides []string) Row {
	a, b := Cell{Side: sides[0], Value: "-"}, Cell{Side: sides[1], Value: "-", Effect: c.Effect,
		Verdict: c.Effect.words("no data", "noise", "B is "+string(c.Effect)),
		Change:  c.Change, From: c.Low, To: c.High, Noise: c.Floor}
	if c.Effect != none {
		a.Value, a.Values, a.Median = c.metric.Format(c.A), c.values[0], c.A
		b.Value, b.Values, b.Median = c.metric.Format(c.B), c.values[1], c.B
	}
	a.explain()
	b.explain()
	if c.contradicted() {
		b.ChangeText = "~"
	}
	return Row{Metric: c.Metric, Says: c.metric.Direction(), Cells: []Cell{a, b}}
}

// failures says in how many runs of a side a safety property failed; empty = in none.
func failures(s *Side) string {
	failed := slices.DeleteFunc(slices.Clone(s.Runs), func(r results.Run) bool { return !r.Failed() })
	if len(failed) == 0 {
		return ""
	}
	_, text := failed[0].Safety()
	return fmt.Sprintf("%s: SAFETY FAIL in %d of %s: %s", s.Name, len(failed), human.Quantity(len(s.Runs), "run"), text)
}
