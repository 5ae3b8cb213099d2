package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/workload"
)

const (
	searchDuration = 2 * time.Second
	searchWarmup   = 500 * time.Millisecond
)

// variable is a setting, such as the rate, whose largest acceptable value the search can find.
type variable struct {
	name   string
	search compare.Search // first value to try, and the largest
	get    func(*workload.Shape) float64
	set    func(*workload.Shape, float64)
}

var variables = settings.Catalogue[variable]{All: []variable{
	{"rate", compare.Search{From: 100, Most: 1_000_000},
		func(w *workload.Shape) float64 { return w.Rate },
		func(w *workload.Shape, to float64) { w.Rate = to }},
	{"workers", compare.Search{From: 1, Most: 4096, Whole: true},
		func(w *workload.Shape) float64 { return float64(w.Workers) },
		func(w *workload.Shape, to float64) { w.Workers = int(math.Round(to)) }},
}, Name: func(v variable) string { return v.name }}

type search struct {
	*series
	over      variable
	objective compare.Gate
	precision float64
	failed    []results.Run // runs that violated a safety property
	found     compare.Found
}

func (e Env) searchCommand(p harness.Plan, example string) *cobra.Command {
	c := &cobra.Command{
		Use: "search", Short: "find the highest rate that holds an objective", Args: e.takes(0, 0),
		Long: "search looks for the highest rate, or number of workers, at which an objective holds: by doubling\n" +
			"until it breaks, then by bisection, then by looking again at both sides of the edge. It does not go\n" +
			"beyond what the load generator can be believed at: then more is unknown, and the exit code 3.",
		Example: example,
	}
	p.Duration, p.Warmup = searchDuration, searchWarmup
	o := newOptions(c, p)
	s := &search{over: variables.All[0], precision: 0.05}
	o.planFlags()
	o.Add(flag(session, "slo", "the objective, as in response.p99<50ms"), "expr", "", func(text string) (err error) {
		if s.objective, err = compare.ParseGate(text); err == nil && s.objective.Relative {
			err = errors.New("an objective is compared with a value, not with a change")
		} else if err == nil {
			err = s.objective.Whole()
		}
		return err
	}).Complete = settings.CompleteList(allMetrics.Names(), true)
	settings.One(&o.Set, flag(session, "over", "what to raise: "+variables.String()), &s.over, variables)
	o.Share(flag(session, "precision", "how close to the edge to go"), "share", &s.precision,
		"more than 0%, at most 100%", func(n float64) bool { return n > 0 })
	o.planned(webOutput, metricsOutput, jsonOutput, quietOutput)
	return e.command(c, o, interruptible(func(ctx context.Context, signals signals, _ []string) int {
		s.series = newSeries(e, c, o)
		s.tells, o.tui = false, tuiOff
		err := s.carryOut(ctx, signals, s.check, s.steps)
		return s.answer(signals.stop, err)
	}))
}

func (s *search) answer(stop context.Context, err error) int {
	if s.found.Objective == "" {
		return s.e.refuse(stop, s.o, err)
	}
	s.e.complain(err)
	objective := compare.GateResult{Gate: s.found.Objective, Status: s.found.Status, Summary: s.found.Reason}
	x := s.exit(stop, s.failed, []compare.GateResult{objective}, err)
	document := Document{Schema: schema, Exit: x, Saved: s.dir, Search: &s.found}
	judged := append(judgements(s.dir, s.failed), gateJudgements([]compare.GateResult{objective})...)
	return s.e.answer(s.o, result{x, document, s.found.WriteText, s.dir, "search.json", judged, nil})
}

func (s *search) check(stop context.Context) error {
	if !s.o.Flags.Changed("slo") {
		s.o.Mistake("slo", "is missing: the objective, as in --slo 'response.p99<50ms'")
	}
	if p := &s.o.plan; len(p.Phases)+len(p.Workload.Trace) > 0 {
		s.o.Mistake("", "search raises one load: phases and traces have loads of their own")
	}
	s.o.plan.Preset = !s.o.Flags.Changed("topology")
	job, err := s.o.plan.Check(stop, s.o.Mistakes)
	if err != nil {
		return err
	}
	if n := len(job.Combinations); n != 1 {
		s.o.Mistake("", "search looks at one combination of topology and lock, not at %d", n)
		return s.o.invalid()
	}
	return nil
}

// steps runs the search, and yields the plan for each value that the search tries.
func (s *search) steps(yield func(*step) bool) {
	by := s.over.search
	if s.o.Flags.Changed(s.over.name) {
		by.From = s.over.get(&s.o.plan.Workload)
	}
	by.Step = s.precision
	by.Try = func(at float64) (compare.GateResult, error) { return s.try(yield, at) }
	s.found, _ = by.Run() // the error is in the series
	s.found.Objective, s.found.Over = s.objective.Text, s.over.name
}

// errEnded makes the search return when its series has ended.
var errEnded = errors.New("the search was ended")

// try runs the plan at one value, and returns the result for the objective. If the run measured too little to decide,
// it is repeated with a longer duration.
func (s *search) try(yield func(*step) bool, at float64) (r compare.GateResult, err error) {
	p := s.o.plan
	s.over.set(&p.Workload, at)
	for p = range harness.Sixteen.Of(p) {
		st := &step{plan: p, title: fmt.Sprintf("trying %s %s, about %v", s.over.name, s.over.search.Text(at),
			(p.Warmup + p.Duration).Round(time.Second))}
		goesOn := yield(st)
		if len(st.runs) > 0 && st.runs[0].Failed() { // also if it was interrupted
			s.failed = append(s.failed, st.runs[0])
		}
		if !goesOn {
			return r, cmp.Or(st.err, errEnded)
		}
		if r = s.objective.Check([]*results.Run{&st.runs[0]}); r.Status != compare.GateUnderpowered {
			break
		}
	}
	return r, nil
}
