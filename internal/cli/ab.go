package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// Defaults of a trial. Many pairs of short runs are better evidence than a few long runs.
const (
	abPairs    = 12
	abDuration = time.Second
	abWarmup   = 200 * time.Millisecond
	maxPairs   = 1000
)

// trial is an A/B comparison: two sides, each with its own settings, whose runs take turns.
type trial struct {
	comparing
	*series
	pairs int
	sides [2]*side
	whole []compare.Pair
}

// abExample and searchExample are shown in the help of bench.
const (
	abExample = "  bench ab 'lock=redsync' 'lock=redislock' --pairs 12\n" +
		"  bench ab 'backoff=50ms' 'backoff=1ms' --workers 32 --hold 2ms\n" +
		"  bench ab 'bench=base/bench' 'bench=bin/bench' --gate 'response.p99<+15%' --gate cost.round_trips<+1%"
	searchExample = "  bench search --slo 'response.p99<50ms' --over rate\n" +
		"  bench search --slo 'fairness.jain>0.8' --over workers --lock redsync"
)

func (e Env) abCommand(p harness.Plan, example string) *cobra.Command {
	c := &cobra.Command{
		Use: "ab 'SETTINGS' 'SETTINGS'", Short: "compare two settings in turns, and tell a difference from noise",
		Args: e.takes(2, 2),
		Long: "ab runs two settings in turns (A B A' A' B A, and so on), so that what else happens on the machine\n" +
			"happens to both. A' has the settings of A: what it shows against A is the noise floor, and only what\n" +
			"goes beyond it is called a difference. Deployments stay up between the runs. Settings are flags\n" +
			"without their dashes, with commas in between; flags that are given as such hold for both. The setting\n" +
			"bench=PATH runs a side by another build.",
		Example:           example,
		ValidArgsFunction: completeSettings,
	}
	p.Duration, p.Warmup = abDuration, abWarmup
	o := newOptions(c, p)
	t := &trial{pairs: abPairs}
	o.planFlags()
	o.Integer(flag(session, "pairs", "how many pairs to run; each is three runs"), &t.pairs, maxPairs)
	o.comparingFlags(&t.comparing)
	o.planned(webOutput, metricsOutput, jsonOutput, quietOutput)
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, args []string) int {
		t.series = newSeries(e, c, o)
		err := t.carryOut(ctx, s, func(stop context.Context) error { return t.check(stop, args) }, t.steps)
		return t.answer(s.stop, err)
	}))
}

func (t *trial) answer(stop context.Context, err error) int {
	if len(t.whole) == 0 {
		return t.e.refuse(stop, t.o, err)
	}
	t.e.complain(err)
	outcome := compare.NewTrial(t.sides[0].name, t.sides[1].name, t.whole, t.shown())
	outcome.CheckGates(t.gates)
	var runs []results.Run
	for i := range t.whole {
		runs = append(runs, t.whole[i][:]...)
	}
	x := t.exit(stop, runs, outcome.Gates, err).undecided(outcome.Undecided())
	document := Document{Schema: schema, Exit: x, Saved: t.dir, Trial: outcome}
	text := func(w io.Writer) error {
		p := human.Printer{W: w}
		if x.Code == Violation {
			p.Line("SAFETY FAIL  %s\n", x.Reason)
		}
		return errors.Join(p.Err, outcome.WriteText(w))
	}
	if t.view = outcome.View(); x.Code == Violation {
		t.view.Failed = x.Reason
	}
	return t.e.answer(t.o, result{x, document, text, t.dir, "trial.json", gateJudgements(outcome.Gates),
		t.summarize(t.e)})
}

// check collects the mistakes in the settings of both sides. A mistake that both sides have is reported once.
func (t *trial) check(stop context.Context, args []string) error {
	var problem error
	for i, arg := range args[:min(len(args), len(t.sides))] {
		t.sides[i] = newSide(t.o, arg)
		if err := t.checkSide(stop, t.sides[i]); problem == nil || err != nil && err.Error() != problem.Error() {
			problem = errors.Join(problem, err)
		}
	}
	if need := compare.PairsNeeded(len(t.shown())); t.pairs < need && len(t.o.Mistakes) == 0 {
		t.o.Mistake("pairs", "%d: at least %d to tell a difference from noise in %s; or fewer numbers (--show)",
			t.pairs, need,
			human.Quantity(len(t.shown()), "number"))
	}
	t.runs = t.pairs * len(compare.Pair{})
	t.about = time.Duration(t.runs) * (t.o.plan.Warmup + t.o.plan.Duration)
	return cmp.Or(t.o.invalid(), problem)
}

// checkSide adds the mistakes of a side to those of the trial. It returns an error if this machine cannot run the
// side.
func (t *trial) checkSide(stop context.Context, s *side) error {
	s.o.plan.Preset = !t.o.Flags.Changed("topology") && !s.o.Flags.Changed("topology")
	job, err := s.o.plan.Check(stop, s.o.Mistakes)
	usage, invalid := errors.AsType[*harness.UsageError](err)
	switch {
	case invalid:
		t.o.Mistakes.Add(usage.Mistakes...)
		err = nil
	case err == nil && len(job.Combinations) != 1:
		t.o.Mistake("", "%s: names %d combinations of topology and lock; ab compares one with one", s.name,
			len(job.Combinations))
	}
	if s.program != "" {
		if info, err := os.Stat(s.program); err != nil || info.IsDir() {
			t.o.Mistake("", "%s: no such program", s.name)
		}
	}
	return err
}

// steps yields the runs of the schedule, three for each pair: see compare.Schedule. It drops the last pair if one of
// its runs is missing.
func (t *trial) steps(yield func(*step) bool) {
	var pair compare.Pair
	done := map[compare.Arm]bool{}
	for i, arm := range compare.Schedule(t.pairs, t.o.plan.Workload.Seed) {
		s := t.sides[int(arm)%2]
		st := &step{plan: s.o.plan,
			title: fmt.Sprintf("pair %d of %d: %s  %s", i/len(pair)+1, t.pairs, armNames[arm], s.name)}
		st.plan.Workload.Seed += uint64(i / len(pair))
		// if one side uses another build, both sides run as separate programs: so they differ in the build only
		if t.sides[0].program+t.sides[1].program != "" {
			args := settings.Before(append(arguments(t.root, st.plan), "--out", t.dir))
			st.instead = func(ctx, stop context.Context) (*results.Run, error) { return s.runProgram(ctx, stop, args) }
		}
		if !yield(st) {
			return
		}
		pair[arm], done[arm] = st.runs[0], true
		if len(done) == len(pair) {
			t.whole = append(t.whole, pair)
			clear(done)
		}
	}
}

var armNames = map[compare.Arm]string{compare.ArmA: "A ", compare.ArmB: "B ", compare.ArmTwin: "A'"}
