package results

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Gate is a condition that a run must meet, as in "response.p99<50ms", or a change that a comparison must not show,
// as in "response.p99<+10%".
type Gate struct {
	Text     string
	Metric   Metric
	Op       string
	Limit    float64
	Relative bool // the limit is a share of the first side: 0.1 = ten percent more
}

// Operators are those of a gate.
var Operators = []string{"<=", ">=", "<", ">", "=="}

var gateForm = "METRIC OPERATOR VALUE, as in response.p99<50ms, throughput>1000/s, fairness.jain>0.8 or cost.round_trips<=2.1"

// ParseGate reads a gate. The error says what is good in place of what is wrong.
func ParseGate(text string) (Gate, error) {
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return Gate{}, errors.New("a gate is " + gateForm)
	}
	g := Gate{Text: strings.ReplaceAll(text, " ", "")}
	rest := strings.TrimSpace(text[at:])
	for _, op := range Operators {
		if strings.HasPrefix(rest, op) {
			g.Op = op
			break
		}
	}
	if g.Op == "" {
		return Gate{}, fmt.Errorf("the operators are %s", strings.Join(Operators, " "))
	}
	var errs []error
	var err error
	if g.Metric, err = FindMetric(strings.TrimSpace(text[:at])); err != nil {
		errs = append(errs, err)
	}
	if err := g.limit(strings.TrimSpace(rest[len(g.Op):])); err != nil {
		errs = append(errs, err)
	}
	return g, errors.Join(errs...)
}

// limit reads the value in the unit of the metric; without a metric, in any.
func (g *Gate) limit(text string) error {
	if number, ok := strings.CutSuffix(text, "%"); ok && strings.ContainsAny(text[:1], "+-") {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return fmt.Errorf("%q: a change is written +10%% or -5%%", text)
		}
		g.Limit, g.Relative = x/100, true
		if g.Op == "==" {
			return errors.New("no change is ever exactly so much: use <, <=, > or >=")
		}
		return nil
	}
	switch {
	case g.Metric.Name == "":
		return nil
	case g.Metric.Unit == Nanoseconds:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q: %s is a duration with a unit, as in 500us, 50ms or 1.5s", text, g.Metric.Name)
		}
		g.Limit = float64(d)
		return nil
	case g.Metric.Unit == PerSecond:
		text = strings.TrimSuffix(text, "/s")
	case strings.HasSuffix(text, "%") && g.Metric.Unit == Share:
		x, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		g.Limit = x / 100
		return err
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) {
		return fmt.Errorf("%q: %s is compared with a number", text, g.Metric.Name)
	}
	g.Limit = x
	return nil
}

// holds tells whether a value meets the gate.
func (g *Gate) holds(v float64) bool {
	switch g.Op {
	case "<":
		return v < g.Limit
	case "<=":
		return v <= g.Limit
	case ">":
		return v > g.Limit
	case ">=":
		return v >= g.Limit
	default:
		return v == g.Limit
	}
}

// below tells whether the gate bounds from above.
func (g *Gate) below() bool { return g.Op == "<" || g.Op == "<=" || g.Op == "==" }

// GateStatus is how a gate came out. The zero value is no pass.
type GateStatus string

// The outcomes of a gate.
const (
	GateNoData       GateStatus = "no data"
	GateUnderpowered GateStatus = "underpowered" // too little was measured to tell
	GateInconclusive GateStatus = "inconclusive" // what was measured is not to be believed
	GateFail         GateStatus = "fail"
	GatePass         GateStatus = "pass"
)

// GateResult is a gate that was checked.
type GateResult struct {
	Gate     string     `json:"gate"`
	Topology string     `json:"topology,omitempty"`
	Lock     string     `json:"lock,omitempty"`
	Status   GateStatus `json:"status"`
	Summary  string     `json:"summary"`
	Value    *float64   `json:"value"` // null if there is none
	Runs     int        `json:"runs"`
}

// Check tells whether repeated runs of one thing meet the gate: their median speaks for them.
func (g *Gate) Check(runs []*Run) GateResult {
	r := GateResult{Gate: g.Text, Status: GateNoData, Runs: len(runs), Summary: "no run says anything of it"}
	if len(runs) == 0 {
		return r
	}
	r.Topology, r.Lock = runs[0].Topology, runs[0].Lock
	readings := make([]Reading, 0, len(runs))
	weakest, saturated, interactive := Supported, "", false
	for _, run := range runs {
		reading := g.Metric.Of(run)
		readings = append(readings, reading)
		weakest = min(weakest, reading.Support)
		interactive = interactive || run.Interactive
		if run.Generator.State == Saturated {
			saturated = strings.Join(run.Generator.Reasons, "; ")
		}
	}
	switch {
	case interactive:
		r.Status, r.Summary = GateInconclusive, "a person has meddled by key"
		return r
	case weakest == NoData:
		return r
	case weakest == Underfed:
		r.Status, r.Summary = GateUnderpowered, "too few visits to support "+g.Metric.Name+": run longer"
		return r
	case saturated != "" && g.Metric.Timed():
		r.Status, r.Summary = GateInconclusive, "the generator was saturated: "+saturated
		return r
	}
	slices.SortFunc(readings, func(a, b Reading) int { return cmp.Compare(a.Value, b.Value) })
	r.Value = new(float64)
	*r.Value = medianReading(readings)
	r.Status, r.Summary = g.outcome(*r.Value, weakest), g.Metric.Name+" is "+g.Metric.Format(*r.Value)
	if weakest == AtLeast {
		r.Summary = g.Metric.Name + " is " + g.Metric.Format(*r.Value) + " or more: too many waits had no end"
	}
	if len(runs) > 1 {
		r.Summary += fmt.Sprintf(" (median of %d runs)", len(runs))
	}
	return r
}

func medianReading(sorted []Reading) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2].Value + sorted[n/2].Value) / 2
}

// outcome is that of a value. One that is only known to be this or more can break a bound from above and meet one
// from below, and says nothing otherwise.
func (g *Gate) outcome(v float64, support Support) GateStatus {
	holds := g.holds(v)
	switch {
	case support == AtLeast && holds == g.below():
		return GateUnderpowered
	case holds:
		return GatePass
	default:
		return GateFail
	}
}

// CheckGates checks every gate against the runs of every combination of topology and lock.
func CheckGates(gates []Gate, runs []Run) (all []GateResult) {
	for _, group := range groupRuns(runs) {
		for i := range gates {
			all = append(all, gates[i].Check(group))
		}
	}
	return all
}

// groupRuns puts the runs of one topology and lock together, in the order in which they first come.
func groupRuns(runs []Run) (groups [][]*Run) {
	at := map[string]int{}
	for i := range runs {
		key := runs[i].Combination()
		if _, known := at[key]; !known {
			at[key] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[key]] = append(groups[at[key]], &runs[i])
	}
	return groups
}

// WriteGates writes how gates came out, for people.
func WriteGates(w io.Writer, all []GateResult) error {
	if len(all) == 0 {
		return nil
	}
	p := &human.Printer{W: w}
	p.Line("")
	writeGates(p, all)
	return p.Err
}

func writeGates(p *human.Printer, all []GateResult) {
	for i := range all {
		g := &all[i]
		about := strings.TrimSpace(g.Topology + " " + g.Lock)
		text := fmt.Sprintf("%s  %s: %s", strings.ToUpper(string(g.Status)), g.Gate, g.Summary)
		if about != "" {
			text = about + ": " + text
		}
		p.Fact("GATE", text)
	}
}
