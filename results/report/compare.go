package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"hammerlock/checker"
	"hammerlock/results/compare"
)

// WriteComparison writes a comparison as an HTML page, which works without scripts and without a network.
func WriteComparison(v *compare.View, w io.Writer) error {
	style, s := joined("assets/report.css", "assets/compare.css"), stateOfComparison(v)
	policy := "default-src 'none'; style-src '" + digest(style) +
		"'; img-src data:; base-uri 'none'; form-action 'none'"
	return webpage(policy, s.Word+" · "+v.Title+" · Hammerlock", style, top("comparison"), h.Main(
		seal(s, text(h.P, "", v.Failed), texts(h.P, "", v.Summary), texts(h.P, "minor", v.Notes), repeat(v.Command)),
		g.Map(v.Tables, func(t compare.Table) g.Node {
			return h.Section(text(h.H2, "", cmp.Or(t.Name, v.Title)), h.Div(h.Class("scroll"), sides(&t)))
		}),
		gates(v), part("How to read this page", text(h.P, "note", v.Method),
			text(h.P, "note", "A dot is a run, a bar its side's median, the shade behind it "+
				"the interval of the median. A diamond is the change against the first side; the line through it is "+
				"where the true change lies. An arrow lies farther "+
				"out than the picture reaches. The band in the middle is the noise floor: what lies in it is no "+
				"difference. Equal ratios lie equally far from 0 %."))),
	).Render(w)
}

// sides makes a table with a row for each metric and side.
func sides(t *compare.Table) g.Node {
	heads := []string{"Number", "Side", "Median", "Runs", "Change", "Verdict",
		"Change, its interval and the noise floor"}
	return h.Table(h.Class("sides"), h.THead(h.Tr(g.Map(heads, func(name string) g.Node {
		return h.Th(h.Scope("col"), g.Text(name))
	}))),
		g.Map(t.Rows, func(r compare.Row) g.Node {
			var all g.Group
			for k := range r.Cells {
				c := &r.Cells[k]
				var name, change, verdict, picture g.Node
				switch k {
				case 0:
					name = text(h.B, "", r.Metric)
				case 1:
					name = text(h.Small, "", r.Says)
				}
				title := g.Node(nil)
				if k > 0 {
					title = h.Title(fmt.Sprintf("interval %s, noise floor %s", c.Interval, c.Floored))
					change, verdict, picture = g.Text(c.ChangeText),
						text(h.Span, "effect "+c.Effect.Class(), c.Sign+" "+string(c.Verdict)), forest(c, t)
				}
				all = append(all, h.Tr(h.Td(name), h.Td(g.Text(c.Side)), h.Td(g.Text(c.Value)), h.Td(dots(c, &r)),
					h.Td(title, change), h.Td(verdict), h.Td(picture)))
			}
			return h.TBody(all)
		}),
		h.TFoot(h.Tr(h.Td(h.ColSpan("6")), h.Td(axis(t)))))
}

// gates lists the results of the assertions about the comparison.
func gates(v *compare.View) g.Node {
	if len(v.Gates) == 0 {
		return nil
	}
	var rows g.Group
	for _, x := range v.Gates {
		rows = append(rows, h.Tr(h.Td(g.Textf("%s %s %s", x.Topology, x.Lock, x.Gate)),
			h.Td(gateState(x.Status).node()), h.Td(g.Text(x.Summary))))
	}
	return part("Gates", h.Div(h.Class("scroll"), h.Table(h.Class("words"), h.TBody(rows))))
}

func gateState(s compare.GateStatus) state {
	shown := map[compare.GateStatus]checker.Status{compare.GatePass: checker.Pass, compare.GateFail: checker.Fail}[s]
	return state{stateOf(shown).Class, stateOf(shown).Sign, strings.ToUpper(string(s))}
}

// stateOfComparison returns the most important state: a safety property failed, or an assertion failed, or neither
// did.
func stateOfComparison(v *compare.View) state {
	s := state{"plain", "≷", "Comparison"}
	if len(v.Gates) > 0 {
		s = state{"pass", "✓", "Gates hold"}
	}
	for _, g := range v.Gates {
		switch gateState(g.Status).Class {
		case "fail":
			s = state{"fail", "✕", "A gate fails"}
		case "unsure":
			if s.Class != "fail" {
				s = state{"unsure", "?", "A gate is undecided"}
			}
		}
	}
	if v.Failed != "" {
		return state{"fail", "✕", "SAFETY FAIL"}
	}
	return s
}

// Sizes of the pictures in a row of the table.
const (
	forestWide = 320.0
	forestEdge = 7.0 // space at both sides, so that a mark at the edge is visible
	dotsWide   = 220.0
	rowHigh    = 22.0
	rowMiddle  = rowHigh / 2
)

// reach returns the largest change that the pictures of a table can show, as the logarithm of a ratio. It is that of
// the largest change in the table, but at least 10 % and at most a factor of 8.
func reach(t *compare.Table) float64 {
	most := math.Log(1.1)
	for i := range t.Rows {
		for k := range t.Rows[i].Cells {
			c := &t.Rows[i].Cells[k]
			for _, share := range []*float64{c.Change, c.From, c.To, c.Noise} {
				if share != nil && *share > -1 {
					most = max(most, math.Abs(math.Log1p(*share)))
				}
			}
		}
	}
	return min(most*1.08, math.Log(8))
}

// place returns the horizontal position of a change in its picture. The scale is logarithmic, with 0 % in the
// middle.
func place(share, reach float64) float64 {
	at := math.Copysign(reach, share)
	if share > -1 {
		at = min(max(math.Log1p(share), -reach), reach)
	}
	return forestWide/2 + (forestWide/2-forestEdge)*at/reach
}

// forest draws a change with its confidence interval and the noise floor, as in a forest plot.
func forest(c *compare.Cell, t *compare.Table) g.Node {
	r := reach(t)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="forest %s" viewBox="0 0 %g %g" role="img" aria-label="%s, interval %s">`,
		c.Effect.Class(), forestWide, rowHigh,
		c.ChangeText, c.Interval)
	if c.Noise != nil {
		x := place(*c.Noise, r)
		fmt.Fprintf(&b, `<rect class="floor" x="%.1f" width="%.1f" height="%g"/>`, forestWide-x, 2*x-forestWide,
			rowHigh)
	}
	fmt.Fprintf(&b, `<path class="none" d="M%g 0v%g"/>`, forestWide/2, rowHigh)
	if c.From != nil && c.To != nil {
		fmt.Fprintf(&b, `<path class="interval" d="M%.1f %gH%.1fM%.1f %gv8M%.1f %gv8"/>`, place(*c.From, r), rowMiddle,
			place(*c.To, r),
			place(*c.From, r), rowMiddle-4, place(*c.To, r), rowMiddle-4)
	}
	if c.Change != nil {
		fmt.Fprintf(&b, `<path class="center" d="M%.1f %g%s"/>`, place(*c.Change, r), rowMiddle-5, markOf(*c.Change, r))
	}
	b.WriteString(`</svg>`)
	return g.Raw(b.String())
}

// markOf returns the mark of a change as an SVG path: a diamond, or an arrow if the change is beyond the edge.
func markOf(share, reach float64) string {
	switch {
	case share <= -1 || math.Log1p(share) < -reach:
		return "l-6 5l6 5z"
	case math.Log1p(share) > reach:
		return "l6 5l-6 5z"
	}
	return "l5 5l-5 5l-5 -5z"
}

// axis draws the common scale below a table's forest plots.
func axis(t *compare.Table) g.Node {
	r, last := reach(t), math.Inf(-1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="forest" viewBox="0 0 %g %g" aria-hidden="true">`, forestWide, rowHigh)
	for _, percent := range []float64{-80, -50, -20, -10, -5, 0, 5, 10, 25, 100, 300, 600} {
		x := place(percent/100, r)
		if math.Abs(math.Log1p(percent/100)) > r || x-last < 44 || percent < 0 && forestWide/2-x < 44 || x < 18 ||
			x > forestWide-18 {
			continue
		}
		last = x
		fmt.Fprintf(&b, `<path class="none" d="M%.1f 0v4"/><text x="%.1f" y="16">%s</text>`, x, x, axisText(percent))
	}
	b.WriteString(`</svg>`)
	return g.Raw(b.String())
}

func axisText(percent float64) string {
	if percent == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%+.0f %%", percent)
}

// dots draws a dot for each run of a side, and the median with its confidence interval. The sides of a row share one
// scale.
func dots(c *compare.Cell, row *compare.Row) g.Node {
	least, most := math.Inf(1), math.Inf(-1)
	for _, cell := range row.Cells {
		for _, v := range cell.Values {
			least, most = min(least, v), max(most, v)
		}
	}
	span := cmp.Or(most-least, 1)
	at := func(v float64) float64 { return 8 + (dotsWide-16)*min(max((v-least)/span, 0), 1) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="dots" viewBox="0 0 %g %g" aria-hidden="true">`, dotsWide, rowHigh)
	if c.Low != nil && c.High != nil {
		fmt.Fprintf(&b, `<rect class="own" x="%.1f" y="3" width="%.1f" height="%g"/>`, at(*c.Low),
			max(at(*c.High)-at(*c.Low), 1), rowHigh-6)
	}
	for _, v := range c.Values {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%g" r="3"/>`, at(v), rowMiddle)
	}
	if len(c.Values) > 0 {
		fmt.Fprintf(&b, `<path class="median" d="M%.1f 1v%g"/>`, at(c.Median), rowHigh-2)
	}
	b.WriteString(`</svg>`)
	return g.Raw(b.String())
}
