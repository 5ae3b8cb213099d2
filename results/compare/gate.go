package compare

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// Gate is an assertion. It is about a run ("response.p99<50ms"), about a phase of a run
// ("steady:response.p99<50ms"), or about the change in a comparison ("response.p99<+10%").
type Gate struct {
	Text     string
	Phase    string // name of the phase; empty = the whole run
	Abort    bool   // end a run early when it does not satisfy the Gate
	Metric   results.Metric
	Relative bool // the limit is a change from the first side: 0.1 = 10 % more
	op       string
	limit    float64
}

// operators lists the comparison operators. Since <= begins with <, it must come first.
var operators = []string{"<=", ">=", "<", ">", "=="}

const gateForm = "METRIC OPERATOR VALUE, as in response.p99<50ms, throughput>1000/s, fairness.jain>0.8 or " +
	"cost.round_trips<=2.1"

// abort is the suffix of a Gate that can end a run early.
const abort = " abort"

// ParseGate parses a Gate: [PHASE:]METRIC OPERATOR VALUE[ abort]. If the text is wrong, the error lists what is
// allowed.
func ParseGate(text string) (g Gate, err error) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "&|,;") {
		return Gate{}, errors.New("one condition a gate: give --gate several times, and all must hold")
	}
	text, g.Abort = strings.CutSuffix(text, abort)
	g.Text = strings.ReplaceAll(text, " ", "")
	if g.Abort {
		g.Text += abort
	}
	if phase, rest, ok := strings.Cut(text, ":"); ok {
		g.Phase, text = strings.TrimSpace(phase), rest
	}
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return Gate{}, errors.New("a gate is " + gateForm)
	}
	rest := strings.TrimSpace(text[at:])
	of := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if of < 0 {
		return Gate{}, fmt.Errorf("the operators are %s", strings.Join(operators, " "))
	}
	g.op = operators[of]
	g.Metric, err = results.FindMetric(strings.TrimSpace(text[:at]))
	return g, errors.Join(err, g.inTime(), g.parseLimit(strings.TrimSpace(rest[len(g.op):])))
}

// late lists metrics that are unknown until the run has ended. ofRuns lists metrics that phases do not have.
var (
	late   = []string{"counter.lost", "cost.round_trips", "cost.commands", "cost.server_cpu"}
	ofRuns = []string{"counter.lost", "cost.round_trips", "unavailable.total", "unavailable.longest",
		"recovery.longest"}
)

// inTime returns an error in two cases. The Gate shall end runs early, but its metric is only known after a run. Or
// the Gate is about a phase, but only whole runs have its metric.
func (g *Gate) inTime() error {
	switch name := g.Metric.Name; {
	case g.Abort && slices.Contains(late, name):
		return fmt.Errorf("%s is known when a run is over: it cannot end one early", g.Metric.Name)
	case g.Phase != "" && slices.Contains(ofRuns, name):
		return fmt.Errorf("%s is measured for the whole run only: leave the phase out", g.Metric.Name)
	}
	return nil
}

func (g *Gate) Whole() error {
	if g.Phase != "" || g.Abort {
		return errors.New("only the gates of runs know phases and abort")
	}
	return nil
}

// parseLimit parses the limit: a value of the metric, or a change such as +10%. Without a metric it must be a
// change.
func (g *Gate) parseLimit(text string) (err error) {
	number, ok := strings.CutSuffix(text, "%")
	switch {
	case ok && strings.ContainsAny(text[:1], "+-"):
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return fmt.Errorf("%q: a change is written +10%% or -5%%", text)
		}
		if g.limit, g.Relative = x/100, true; g.op == "==" {
			return errors.New("a change is never exactly equal to a value: use <, <=, > or >=")
		}
	case g.Metric.Name != "":
		g.limit, err = g.Metric.Parse(text)
	}
	return err
}

func (g *Gate) holds(v float64) bool {
	return v < g.limit && g.op[0] == '<' || v > g.limit && g.op[0] == '>' || v == g.limit &&
		strings.HasSuffix(g.op, "=")
}

// GateStatus is the result of a Gate. The zero value is no pass.
type GateStatus string

// The results of a Gate.
const (
	GateNoData       GateStatus = "no data"
	GateNotReached   GateStatus = "not reached"  // another Gate ended the run before
	GateUnderpowered GateStatus = "underpowered" // too little was measured
	GateInconclusive GateStatus = "inconclusive" // the measurements cannot be trusted
	GateFail         GateStatus = "fail"
	GatePass         GateStatus = "pass"
)

// GateResult is the result of a Gate, and the measured value that was compared with its limit.
type GateResult struct {
	Gate     string     `json:"gate"`
	Topology string     `json:"topology,omitempty"`
	Lock     string     `json:"lock,omitempty"`
	Status   GateStatus `json:"status"`
	Summary  string     `json:"summary"`
	Value    *float64   `json:"value"` // null = there is no value
	Runs     int        `json:"runs"`
}

// Check checks the Gate against the median of the runs.
func (g *Gate) Check(runs []*results.Run) GateResult {
	r := GateResult{Gate: g.Text, Status: GateNoData, Runs: len(runs), Summary: "no run has data for it"}
	if len(runs) == 0 {
		return r
	}
	r.Topology, r.Lock = runs[0].Topology, runs[0].Lock
	var values []float64
	weakest, saturated, interactive, longer := results.Supported, "", false, time.Duration(0)
	for _, run := range runs {
		if g.Phase != "" {
			run = run.In(g.Phase)
		}
		if run == nil {
			return r
		}
		if run.Measured == 0 && run.Aborted != "" {
			r.Status, r.Summary = GateNotReached, "the run was ended before: "+run.Aborted
			return r
		}
		reading := g.Metric.Of(run)
		values = append(values, reading.Value)
		weakest = min(weakest, reading.Support)
		longer = max(longer, time.Duration(reading.Times*float64(run.Measured)))
		interactive = interactive || run.Interactive
		if run.Generator.State.Unfit() {
			saturated = strings.Join(run.Generator.Reasons, "; ")
		}
	}
	switch {
	case interactive:
		r.Status, r.Summary = GateInconclusive, "a run was changed interactively"
		return r
	case weakest == results.NoData:
		return r
	case weakest == results.TooFew:
		r.Status = GateUnderpowered
		r.Summary = fmt.Sprintf("too few visits to support %s: measure for %s", g.Metric.Name,
			longer.Truncate(time.Second)+time.Second)
		return r
	case saturated != "" && g.Metric.Timed():
		r.Status, r.Summary = GateInconclusive, "the generator was saturated or disturbed: "+saturated
		return r
	}
	slices.Sort(values)
	n := len(values)
	median := (values[(n-1)/2] + values[n/2]) / 2
	r.Value, r.Status = &median, g.outcome(median, weakest)
	r.Summary = g.Metric.Name + " is " + g.Metric.FormatBeside(median, g.limit)
	if weakest == results.AtLeast {
		r.Summary += " or more: too many waits had no end"
	}
	if n > 1 {
		r.Summary += fmt.Sprintf(" (median of %d runs)", n)
	}
	return r
}

// outcome returns the status for a measured value. The value may be only a lower bound of the true value. Then it
// can prove only two things: the true value exceeds an upper limit, or it satisfies a lower limit.
func (g *Gate) outcome(v float64, support results.Support) GateStatus {
	holds, fromAbove := g.holds(v), !strings.HasPrefix(g.op, ">")
	switch {
	case support == results.AtLeast && holds == fromAbove:
		return GateUnderpowered
	case holds:
		return GatePass
	default:
		return GateFail
	}
}

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
		text := fmt.Sprintf("%s  %s: %s", strings.ToUpper(string(g.Status)), g.Gate, g.Summary)
		if about := strings.TrimSpace(g.Topology + " " + g.Lock); about != "" {
			text = about + ": " + text
		}
		p.Fact("GATE", text)
	}
}
