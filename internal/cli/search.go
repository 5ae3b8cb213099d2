package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/topologies"
)

// searchable are the settings that a search can go over.
var searchable = []string{"rate", "workers"}

// Where a search begins and ends, and how much longer it looks where there is too little to see.
const (
	searchDuration = 2 * time.Second
	searchWarmup   = 500 * time.Millisecond
	firstRate      = 100
	firstWorkers   = 1
	mostRate       = 1_000_000
	mostWorkers    = 4096
	longestLook    = 16
)

// searching is what a search is asked for.
type searching struct {
	over      string
	slo       compare.Gate
	precision float64
}

func (e Env) searchCommand() *command {
	c := &cobra.Command{
		Use: "search", Short: "find the highest rate that holds an objective",
		Long: "search looks for the highest rate, or number of workers, at which an objective holds: by doubling until it breaks,\n" +
			"then by bisection, then by looking again at both sides of the edge. It does not go beyond what the load generator\n" +
			"can be believed at: then more is unknown, and the exit code 3.",
		Example: "  bench search --slo 'response.p99<50ms' --over rate\n" +
			"  bench search --slo 'fairness.jain>0.8' --over workers --lock redsync",
	}
	o := newOptions(c, false)
	p, f := &o.plan, c.Flags()
	p.Topologies, p.Duration, p.Warmup = topologies.All[:1], searchDuration, searchWarmup
	for name, preset := range map[string]string{"topology": "single", "duration": short(searchDuration), "warmup": short(searchWarmup)} {
		f.Lookup(name).DefValue, f.Lookup(name).Value.(*value).text = preset, preset
	}
	for _, name := range []string{"count", "benchfmt", "gate"} {
		_ = f.MarkHidden(name)
	}
	s := searching{over: "rate", precision: 0.05}
	o.add(f, "slo", "expr", "", "the objective, as in response.p99<50ms", func(text string) (err error) {
		if s.slo, err = compare.ParseGate(text); err == nil && s.slo.Relative {
			err = errors.New("an objective is compared with a value, not with a change")
		}
		return err
	})
	o.text(f, "over", "name", func(text string) { s.over = text }, s.over, "what to raise: "+strings.Join(searchable, ", "))
	o.add(f, "precision", "share", "5%", "how close to the edge to go", func(text string) (err error) {
		if _, err = fmt.Sscanf(text, "%f%%", &s.precision); err != nil || s.precision <= 0 || s.precision > 100 {
			return errors.New("more than 0%, at most 100%")
		}
		s.precision /= 100
		return nil
	})
	completions(c)
	return &command{Command: c, o: o, run: func(ctx context.Context, c *command, _ []string) int { return e.search(ctx, c, &s) }}
}

// quest is a search in progress.
type quest struct {
	c         *command
	s         *searching
	out       string
	warm      harness.Warm
	metrics   *metricsServer
	lines     *progress // nil if nobody reads them
	violation Exit
}

func (e Env) search(base context.Context, c *command, s *searching) int {
	ctx, signals, done := onSignals(base)
	stop := signals.stop
	defer done()
	o := c.o
	if s.slo.Text == "" && !given(c.Flags(), "slo") {
		o.mistake("--slo is missing: the objective, as in --slo 'response.p99<50ms'")
	}
	if !slices.Contains(searchable, s.over) {
		o.mistake("--over %q: there is %s", s.over, strings.Join(searchable, ", "))
	}
	q := &quest{c: c, s: s, out: filepath.Join(o.plan.Out, stamp("search"))}
	if !o.quiet {
		q.lines = &progress{w: e.Stderr}
	}
	var err error
	if q.metrics, err = o.openMetrics(e); err != nil {
		o.mistake("%v", err)
	}
	defer q.metrics.close(ctx)
	job, err := o.plan.Check(stop, o.mistakes)
	if err == nil && len(job.Combinations) != 1 {
		err = &harness.UsageError{Mistakes: []string{fmt.Sprintf("search looks at one combination of topology and lock, not at %d", len(job.Combinations))}}
	}
	if err == nil {
		err = os.MkdirAll(q.out, 0o755)
	}
	if err != nil {
		x := exit(stop, nil, nil, err)
		return e.refuse(o, x.Code, strings.Split(x.Reason, "\n")...)
	}
	found, err := q.start(ctx, stop)
	err = errors.Join(err, q.warm.Close())
	e.complain(err)
	doc := struct {
		Schema int           `json:"schema"`
		Exit   Exit          `json:"exit"`
		Saved  string        `json:"saved"`
		Search compare.Found `json:"search"`
	}{schema, q.end(stop, found, err), q.out, found}
	writeErr := saveDocument(filepath.Join(q.out, "search.json"), doc)
	if o.json {
		return e.end(doc.Exit, errors.Join(writeErr, e.document(doc)))
	}
	return e.end(doc.Exit, errors.Join(writeErr, found.WriteText(e.Stdout)))
}

func (q *quest) start(ctx, stop context.Context) (compare.Found, error) {
	search := compare.Search{From: firstRate, Most: mostRate, Step: q.s.precision}
	if q.s.over == "workers" {
		search = compare.Search{From: firstWorkers, Most: mostWorkers, Step: q.s.precision, Whole: true}
	}
	if given(q.c.Flags(), q.s.over) {
		search.From = q.setting()
	}
	search.Try = func(at float64) (compare.GateResult, error) { return q.look(ctx, stop, at) }
	found, err := search.Run()
	found.Objective, found.Over = q.s.slo.Text, q.s.over
	return found, err
}

func (q *quest) tell(event harness.Event) {
	q.metrics.tell(event)
	if q.lines != nil {
		q.lines.tell(event)
	}
}

func (q *quest) setting() float64 {
	if q.s.over == "workers" {
		return float64(q.c.o.plan.Workload.Workers)
	}
	return q.c.o.plan.Workload.Rate
}

// look runs the plan at one value, longer if there is too little to see.
func (q *quest) look(ctx, stop context.Context, at float64) (compare.GateResult, error) {
	p := q.c.o.plan
	p.Out = q.out
	if q.s.over == "workers" {
		p.Workload.Workers = int(math.Round(at))
	} else {
		p.Workload.Rate = at
	}
	for longer := time.Duration(1); ; longer *= 4 {
		p.Duration = q.c.o.plan.Duration * longer
		job, err := p.Check(stop, nil)
		if err != nil {
			return compare.GateResult{}, err
		}
		job.Warm = &q.warm
		job.Command = func(x harness.Combination) string {
			return fmt.Sprintf("%s --%s %g", q.c.o.repeat(q.c, x.Topology.Name, x.Lock.Name), q.s.over, at)
		}
		job.Progress = q.tell
		runs, err := job.Run(ctx, stop)
		if err != nil || len(runs) == 0 || stop.Err() != nil {
			return compare.GateResult{}, errors.Join(err, context.Cause(stop))
		}
		if x := exit(stop, runs, nil, nil); x.Code == Violation {
			q.violation = x
		}
		r := q.s.slo.Check([]*results.Run{&runs[0]})
		if r.Status != compare.GateUnderpowered || longer >= longestLook {
			return r, nil
		}
	}
}

// end is the exit of a search: a pass is an edge that both sides confirm.
func (q *quest) end(stop context.Context, f compare.Found, err error) Exit {
	switch {
	case q.violation.Code == Violation:
		return q.violation
	case err != nil:
		return exit(stop, nil, nil, err)
	case f.Status == compare.GatePass:
		return Exit{Code: Passed}
	case f.Status == compare.GateFail:
		return Exit{Code: Regression, Reason: f.Reason}
	default:
		return Exit{Code: Inconclusive, Reason: f.Reason}
	}
}
