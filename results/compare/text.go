package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// WriteText writes the comparison as text. The sign ~ marks a change that may be noise.
func (c *Comparison) WriteText(w io.Writer) error {
	p := &human.Printer{W: w}
	for _, g := range c.Groups {
		p.Line("%s", strings.TrimSpace(g.Name))
		writeRow(p, "", c.Sides, func(k int) string { return "change" })
		for _, row := range g.Rows {
			var cells []string
			for i := range row.Cells {
				cells = append(cells, row.Cells[i].text(row.metric))
			}
			writeRow(p, row.Metric, cells, func(k int) string { return row.Cells[k].verdict() })
		}
		p.Line("")
	}
	for _, note := range c.Notes {
		p.Wrapped("", 2, note)
	}
	p.Line("medians with their %.0f %% confidence intervals; ~ is noise: Mann-Whitney U tests, %.0f %% for the "+
		"whole table (Holm)",
		100*confidence, 100*familyAlpha)
	writeGates(p, c.Gates)
	return p.Err
}

// writeRow writes a row of the table. After the value of each side except the first comes its change.
func writeRow(p *human.Printer, label string, cells []string, change func(int) string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s", label)
	for k, cell := range cells {
		fmt.Fprintf(&b, " %-20s", cell)
		if k > 0 {
			fmt.Fprintf(&b, " %-24s", change(k))
		}
	}
	p.Line("%s", b.String())
}

// text returns the median with its uncertainty, half the width of the confidence interval.
func (c *figure) text(m results.Metric) string {
	if c.Runs == 0 {
		return "-"
	}
	if c.Low == nil || c.High == nil {
		return m.Format(c.Median) + " ± ?"
	}
	if c.Median == 0 {
		return m.Format(c.Median) + fmt.Sprintf(" (%s..%s)", m.Format(*c.Low), m.Format(*c.High))
	}
	return m.Format(c.Median) + fmt.Sprintf(" ± %.0f %%", 100*max(c.Median-*c.Low, *c.High-c.Median)/c.Median)
}

func (c *figure) verdict() string {
	p := fmt.Sprintf("(p=%.3f)", c.P)
	return c.Effect.words("-", "~ "+p, fmt.Sprintf("%s %s %s", whole(c.Change), c.Effect, p))
}

func (t *Trial) WriteText(w io.Writer) error {
	p := &human.Printer{W: w}
	sides := []string{t.A, t.B}
	for i, side := range sides {
		p.Line("%c  %s%s", 'A'+i, side, t.backoffs[i])
	}
	p.Line("")
	const row = "%-26s %-12s %-12s %-16s %-16s %-12s %s"
	p.Line(row, "", "A", "B", "change", "interval", "noise floor", "")
	p.Line(row, human.Quantity(t.Pairs, "pair"), "median", "median", "median of pairs", "of the change", "A against A",
		"")
	for i := range t.Effects {
		r := t.Effects[i].row(sides)
		a, b := &r.Cells[0], &r.Cells[1]
		p.Line(row, r.Metric, a.Value, b.Value, b.ChangeText, b.Interval, b.Floored, b.Verdict)
	}
	p.Line("")
	for _, text := range slices.Concat(t.Summary, t.Notes) {
		p.Wrapped("", 2, text)
	}
	p.Wrapped("", 2, fmt.Sprintf("The noise floor is what A shows against A in turns with B. %s The intervals hold "+
		"for all rows at once (%.0f %%).", ratios, 100*confidence))
	writeGates(p, t.Gates)
	return p.Err
}

// WriteSpread writes the medians of repeated runs with their confidence intervals, for each topology and lock.
func WriteSpread(w io.Writer, runs []results.Run) error {
	metrics, err := results.FindMetrics(results.Headline)
	if err != nil {
		return err
	}
	p := &human.Printer{W: w}
	p.Line("")
	for _, g := range New([]Side{{Runs: runs}}, used(repeat), metrics).Groups {
		p.Line("%s", g.Name)
		for _, row := range g.Rows {
			p.Line("%-26s %-20s %s", row.Metric, row.Cells[0].text(row.metric),
				human.Quantity(row.Cells[0].Runs, "run"))
		}
		p.Line("")
	}
	p.Line("medians with their %.0f %% confidence intervals", 100*confidence)
	return p.Err
}
