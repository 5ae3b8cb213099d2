package results

import (
	"fmt"
	"math"

	"hammerlock/internal/human"
)

// RegressionGate is the gate that nothing may have become worse.
const RegressionGate = "regression"

// ChangeGate is a gate on a comparison: a change of one metric, or, without a metric, nothing may become worse.
type ChangeGate struct{ Gate }

// ParseChangeGate reads "response.p99<+10%" or "regression".
func ParseChangeGate(text string) (ChangeGate, error) {
	if text == RegressionGate {
		return ChangeGate{Gate{Text: text}}, nil
	}
	g, err := ParseGate(text)
	if err == nil && !g.Relative {
		err = fmt.Errorf("a comparison is gated by a change with its sign, as in %s<+10%%, or by %s", g.Metric.Name, RegressionGate)
	}
	return ChangeGate{g}, err
}

// difference is what a comparison says of a metric between two sides.
type difference struct {
	metric    Metric
	about     string
	runs      int
	effect    Effect
	change    float64
	low, high float64 // infinite if the runs are too few
	floor     float64 // infinite as well
	saturated bool
}

// check tells whether the differences meet the gate. What is within the noise passes, unless so much noise would
// hide what the gate is for.
func (g *ChangeGate) check(all []difference) (results []GateResult) {
	if g.Metric.Name == "" {
		return []GateResult{regressions(all)}
	}
	for _, d := range all {
		if d.metric.Name == g.Metric.Name {
			r := g.judge(d)
			r.Gate, r.Runs, r.Topology = g.Text, d.runs, d.about
			results = append(results, r)
		}
	}
	if len(results) == 0 {
		results = []GateResult{{Gate: g.Text, Status: GateNoData, Summary: "no two sides say anything of it"}}
	}
	return results
}

func (g *ChangeGate) judge(d difference) GateResult {
	r := GateResult{Value: &d.change, Summary: fmt.Sprintf("%s changed by %s", d.metric.Name, signed(d.change))}
	switch {
	case d.effect == None:
		r.Status, r.Value, r.Summary = GateNoData, nil, "nothing is known of "+d.metric.Name
	case d.saturated && d.metric.Timed():
		r.Status, r.Summary = GateInconclusive, "the generator was saturated"
	case d.effect != Noise && !g.holds(d.change):
		r.Status = GateFail
	case math.IsInf(d.floor, 0):
		r.Status, r.Summary = GateUnderpowered, "too few runs to tell a change from noise"
	case d.effect == Noise && d.floor > math.Abs(g.Limit) && !(g.holds(d.low) && g.holds(d.high)):
		r.Status = GateUnderpowered
		r.Summary += fmt.Sprintf(", noise; changes up to %s could not be seen", signed(d.floor))
	case d.effect == Noise:
		r.Status = GatePass
		r.Summary += ", which is noise"
	default:
		r.Status = GatePass
	}
	return r
}

func regressions(all []difference) GateResult {
	r := GateResult{Gate: RegressionGate, Status: GatePass, Summary: "nothing became worse that is more than noise"}
	judged, worse := 0, ""
	for _, d := range all {
		if d.effect != None && !math.IsInf(d.floor, 0) {
			judged++
			r.Runs = max(r.Runs, d.runs)
		}
		if d.effect == Worse && !(d.saturated && d.metric.Timed()) {
			worse += fmt.Sprintf("; %s %s %s", d.about, d.metric.Name, signed(d.change))
		}
	}
	switch {
	case worse != "":
		r.Status, r.Summary = GateFail, "worse:"+worse[1:]
	case judged == 0:
		r.Status, r.Summary = GateUnderpowered, "too few runs to tell a change from noise"
	}
	return r
}

// signed writes a change in percent with its sign.
func signed(x float64) string {
	switch {
	case x >= math.MaxFloat64 || math.IsInf(x, 1):
		return "+∞"
	case x == 0:
		return "0 %"
	case x > 0:
		return "+" + human.Percent(x)
	default:
		return "-" + human.Percent(-x)
	}
}

// CheckGates checks gates on the change between the sides.
func (t *Trial) CheckGates(gates []ChangeGate) {
	var all []difference
	for _, c := range t.Effects {
		d := difference{metric: c.metric, runs: c.Pairs, effect: c.Effect, saturated: c.saturated,
			low: math.Inf(-1), high: math.Inf(1), floor: math.Inf(1)}
		if c.Change != nil {
			d.change = *c.Change
		}
		if c.Low != nil && c.High != nil && c.Floor != nil {
			d.low, d.high, d.floor = *c.Low, *c.High, *c.Floor
		}
		all = append(all, d)
	}
	for i := range gates {
		t.Gates = append(t.Gates, gates[i].check(all)...)
	}
}

// CheckGates checks gates on the change of every side against the first. There is no arm against itself here: what
// the intervals of both sides leave open is taken for the noise.
func (c *Comparison) CheckGates(gates []ChangeGate) {
	var all []difference
	for _, g := range c.Groups {
		for _, row := range g.Rows {
			for k := range row.Cells[1:] {
				all = append(all, row.difference(k+1, g.Name, c.Sides[k+1]))
			}
		}
	}
	for i := range gates {
		c.Gates = append(c.Gates, gates[i].check(all)...)
	}
}

func (r *Row) difference(k int, group, side string) difference {
	first, cell := r.Cells[0], r.Cells[k]
	d := difference{metric: r.metric, about: side, runs: min(first.Runs, cell.Runs), effect: cell.Effect, change: cell.Change,
		low: math.Inf(-1), high: math.Inf(1), floor: math.Inf(1), saturated: cell.saturated || first.saturated}
	if group != "" {
		d.about = side + " " + group
	}
	if first.Low == nil || cell.Low == nil || first.Median == 0 {
		if cell.Effect == Noise && first.Runs > 0 && first.Median == 0 && cell.Median == 0 {
			d.low, d.high, d.floor = 0, 0, 0
		}
		return d
	}
	d.low, d.high = change(*first.High, *cell.Low), change(*first.Low, *cell.High)
	d.floor = max(d.change-d.low, d.high-d.change)
	return d
}
