package compare

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"hammerlock/results"
)

// RegressionGate is the text of the assertion that no metric has become worse.
const RegressionGate = "regression"

// ChangeGate is an assertion about a comparison. It limits the change of one metric. If it has no metric, no metric
// may become worse.
type ChangeGate struct{ Gate }

// ParseChangeGate reads a text such as "response.p99<+10%" or "regression".
func ParseChangeGate(text string) (ChangeGate, error) {
	if text == RegressionGate {
		return ChangeGate{Gate{Text: text}}, nil
	}
	g, err := ParseGate(text)
	if err == nil && !g.Relative {
		err = fmt.Errorf("a comparison is gated by a change with its sign, as in %s<+10%%, or by %s", g.Metric.Name,
			RegressionGate)
	}
	return ChangeGate{g}, errors.Join(err, g.Whole())
}

// difference is the difference between two sides of a comparison in one metric.
type difference struct {
	metric    results.Metric
	about     string
	runs      int // number of runs, or pairs, that have the metric
	made      int // number of all runs, or pairs
	effect    effect
	change    float64
	low, high float64 // confidence interval of change; infinite = too few runs
	floor     float64 // smaller changes are noise; infinite = too few runs
	saturated bool
	least     int           // smallest number of runs, or pairs, that can tell a change from noise
	unit      string        // "runs" or "pairs", with the flag that sets their number
	each      time.Duration // duration of one run or pair
}

const maxRuns = 1000

// enough says how many runs or pairs a decision needs, and how long they take. The argument is a first estimate of
// their number.
func (d *difference) enough(n float64) string {
	if n > maxRuns {
		return "more runs do not help against so much noise: a calmer machine does, or a rate that it serves with " +
			"ease (--rate)"
	}
	n, without := max(n, float64(d.least)), ""
	if d.runs > 0 && d.runs < d.made { // the metric will also be missing in some of the additional runs
		n = max(n*float64(d.made)/float64(d.runs), float64(d.made+1))
		without = fmt.Sprintf("; only %d of %d have %s", d.runs, d.made, d.metric.Name)
	}
	n = math.Ceil(n)
	return fmt.Sprintf("it takes about %.0f %s, %s in all%s", n, d.unit,
		max((time.Duration(n)*d.each).Round(time.Second), time.Second), without)
}

// spoiled reports whether the load generator was too slow in some runs, so that the difference says nothing.
func (d *difference) spoiled() bool { return d.saturated && d.metric.Timed() }

func checkAll(gates []ChangeGate, all []difference) (checked []GateResult) {
	for i := range gates {
		checked = append(checked, gates[i].check(all)...)
	}
	return checked
}

const spoiledRuns = "the generator was saturated or disturbed"

// check checks the assertion against all differences in its metric. A change within the noise passes. But if the
// noise is large enough to hide a forbidden change, the result is underpowered.
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
	r := GateResult{Value: &d.change, Summary: fmt.Sprintf("%s changed by %s", d.metric.Name,
		signedBeside(d.change, g.limit))}
	switch {
	case d.effect == none:
		r.Status, r.Value, r.Summary = GateNoData, nil, "no data for "+d.metric.Name
	case d.spoiled():
		r.Status, r.Summary = GateInconclusive, spoiledRuns
	case d.effect != noise && !g.holds(d.change):
		r.Status = GateFail
	case math.IsInf(d.floor, 0):
		r.Status, r.Summary = GateUnderpowered, "too few runs to tell a change from noise: "+d.enough(0)
	case d.effect == noise && d.floor > math.Abs(g.limit) && !(g.holds(d.low) && g.holds(d.high)):
		r.Status = GateUnderpowered
		// Noise shrinks with the square root of the number of runs: four times as many runs halve it.
		hidden := d.floor / max(math.Abs(g.limit), 0.001)
		r.Summary += fmt.Sprintf(", noise; changes up to %s could not be seen: %s", signed(d.floor),
			d.enough(float64(d.runs)*hidden*hidden))
	case d.effect == noise:
		r.Status = GatePass
		r.Summary += ", which is noise"
	default:
		r.Status = GatePass
	}
	return r
}

// regressions checks that no metric has become worse. It fails if one certainly has. Otherwise it is inconclusive if
// the generator was too slow to judge some metric, because that metric may have become worse.
func regressions(all []difference) GateResult {
	r := GateResult{Gate: RegressionGate, Status: GatePass, Summary: "nothing became worse that is more than noise"}
	judged, worse, doubted := 0, "", ""
	for i := range all {
		d := &all[i]
		text := strings.TrimSpace(fmt.Sprintf("%s %s %s", d.about, d.metric.Name, signed(d.change)))
		switch {
		case d.effect == none:
			continue
		case d.spoiled():
			doubted += "; " + text
		case d.effect == Worse:
			worse += "; " + text
		}
		if !math.IsInf(d.floor, 0) {
			judged++
			r.Runs = max(r.Runs, d.runs)
		}
	}
	switch {
	case worse != "":
		r.Status, r.Summary = GateFail, "worse:"+worse[1:]
	case doubted != "":
		r.Status, r.Summary = GateInconclusive, spoiledRuns+", so these cannot be judged:"+doubted[1:]
	case judged == 0:
		r.Status, r.Summary = GateUnderpowered, "too few runs to tell a change from noise"
		if len(all) > 0 {
			r.Summary += ": " + all[0].enough(0)
		}
	}
	return r
}
