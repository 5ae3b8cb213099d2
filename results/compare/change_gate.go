package compare

import (
	"errors"
	"fmt"
	"math"

	"hammerlock/results"
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
	return ChangeGate{g}, errors.Join(err, g.Whole())
}

// difference is what a comparison says of a metric between two sides.
type difference struct {
	metric    results.Metric
	about     string
	runs      int
	effect    effect
	change    float64
	low, high float64 // infinite if the runs are too few
	floor     float64 // infinite as well
	saturated bool
}

// spoiled tells whether a generator that was too slow makes the difference worthless.
func (d *difference) spoiled() bool { return d.saturated && d.metric.Timed() }

// checkAll tells which of the gates the differences meet.
func checkAll(gates []ChangeGate, all []difference) (checked []GateResult) {
	for i := range gates {
		checked = append(checked, gates[i].check(all)...)
	}
	return checked
}

// check tells whether the differences meet the gate. What is within the noise passes, unless so much noise would
// hide a change that the gate forbids.
func (g *ChangeGate) check(all []difference) (checked []GateResult) {
	if g.Metric.Name == "" {
		return []GateResult{regressions(all)}
	}
	for i := range all {
		if d := &all[i]; d.metric.Name == g.Metric.Name {
			r := g.judge(d)
			r.Gate, r.Runs, r.Topology = g.Text, d.runs, d.about
			checked = append(checked, r)
		}
	}
	if len(checked) == 0 {
		checked = []GateResult{{Gate: g.Text, Status: GateNoData, Summary: "no two sides have data for it"}}
	}
	return checked
}

func (g *ChangeGate) judge(d *difference) GateResult {
	r := GateResult{Value: &d.change, Summary: fmt.Sprintf("%s changed by %s", d.metric.Name, signed(d.change))}
	switch {
	case d.effect == none:
		r.Status, r.Value, r.Summary = GateNoData, nil, "no data for "+d.metric.Name
	case d.spoiled():
		r.Status, r.Summary = GateInconclusive, "the generator was saturated"
	case d.effect != noise && !g.holds(d.change):
		r.Status = GateFail
	case math.IsInf(d.floor, 0):
		r.Status, r.Summary = GateUnderpowered, "too few runs to tell a change from noise"
	case d.effect == noise && d.floor > math.Abs(g.limit) && !(g.holds(d.low) && g.holds(d.high)):
		r.Status = GateUnderpowered
		r.Summary += fmt.Sprintf(", noise; changes up to %s could not be seen", signed(d.floor))
	case d.effect == noise:
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
	for i := range all {
		d := &all[i]
		if d.effect != none && !math.IsInf(d.floor, 0) {
			judged++
			r.Runs = max(r.Runs, d.runs)
		}
		if d.effect == Worse && !d.spoiled() {
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
