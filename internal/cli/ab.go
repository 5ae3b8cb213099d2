package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/topologies"
)

// What a trial does unless it is asked for something else: many short runs tell more than few long ones.
const (
	abPairs    = 12
	abDuration = time.Second
	abWarmup   = 200 * time.Millisecond
	maxPairs   = 1000

	// abProgram is the setting that names another build of bench.
	abProgram = "bench"
)

// abFlags are those of a trial.
type abFlags struct {
	comparing
	pairs int
}

func (e Env) abCommand() *command {
	c := &cobra.Command{
		Use: "ab 'SETTINGS' 'SETTINGS'", Short: "compare two settings in turns, and tell a difference from noise",
		Long: "ab runs two settings in turns (A B A' A' B A, and so on), so that what else happens on the machine happens to both.\n" +
			"A' has the settings of A: what it shows against A is the noise floor, and only what goes beyond it is called a\n" +
			"difference. Deployments stay up between the runs. Settings are flags without their dashes, with commas in\n" +
			"between; flags that are given as such hold for both. The setting bench=PATH runs a side by another build.",
		Example: "  bench ab 'lock=redsync' 'lock=redislock' --pairs 12\n" +
			"  bench ab 'retry=50ms' 'retry=1ms' --workers 32 --hold 2ms\n" +
			"  bench ab 'bench=base/bench' 'bench=bin/bench' --gate 'response.p99<+15%' --gate cost.round_trips<+1%",
		ValidArgsFunction: completeSettings,
	}
	var with abFlags
	o := newTrialOptions(c, &with)
	return &command{Command: c, o: o, takes: "two settings", run: func(ctx context.Context, c *command, args []string) int {
		return e.ab(ctx, c, &with, args)
	}}
}

// newTrialOptions declares the flags of a trial: those of a run, and its own.
func newTrialOptions(c *cobra.Command, with *abFlags) *options {
	o := newOptions(c, false)
	p, f := &o.plan, c.Flags()
	p.Topologies, p.Duration, p.Warmup = topologies.All[:1], abDuration, abWarmup
	for name, preset := range map[string]string{"topology": "single", "duration": short(abDuration), "warmup": short(abWarmup)} {
		f.Lookup(name).DefValue, f.Lookup(name).Value.(*value).text = preset, preset
	}
	for _, name := range []string{"count", "benchfmt"} {
		_ = f.MarkHidden(name)
	}
	with.pairs = abPairs
	o.integer(f, "pairs", &with.pairs, "how many pairs to run; each is three runs")
	o.comparingFlags(c, &with.comparing)
	completions(c)
	return o
}

// completeSettings offers the names of settings.
func completeSettings(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	head := typed[:strings.LastIndex(typed, ",")+1]
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notRepeated, f.Name) || f.Name == "lock" || f.Name == "topology" {
			if setting := head + f.Name + "="; strings.HasPrefix(setting, typed) {
				all = append(all, setting)
			}
		}
	})
	return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// side is one of the two.
type side struct {
	name    string
	program string // another build; empty for this one
	c       *command
}

// settings makes arguments of "lock=redsync,retry=1ms". What follows a comma without a name belongs to the value
// before it.
func settings(text string) (args []string, program string, err error) {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if len(parts) > 0 && !strings.Contains(part, "=") {
			parts[len(parts)-1] += "," + part
			continue
		}
		parts = append(parts, strings.TrimSpace(part))
	}
	for _, part := range parts {
		name, v, ok := strings.Cut(part, "=")
		name = strings.TrimPrefix(name, "--")
		switch {
		case !ok || name == "":
			return nil, "", fmt.Errorf("%q: settings are NAME=VALUE with commas in between, as in lock=redsync,retry=1ms", text)
		case name == abProgram:
			program = v
		case slices.Contains(notRepeated, name) && name != "lock" && name != "topology":
			return nil, "", fmt.Errorf("%q: --%s is not a setting of one side", text, name)
		default:
			args = append(args, "--"+name+"="+v)
		}
	}
	return args, program, nil
}

// newSide reads the flags of the whole command again, and the side's own after them.
func (e Env) newSide(common *command, text string) side {
	s := side{name: text, c: &command{Command: &cobra.Command{Use: "bench"}}}
	var with abFlags
	s.c.o = newTrialOptions(s.c.Command, &with)
	args, program, err := settings(text)
	if err != nil {
		s.c.o.mistake("%v", err)
	}
	s.program = program
	s.c.o.parse(s.c.Flags(), append(flagsGiven(common.Flags()), args...))
	s.c.o.plan.Workload.Seed = common.o.plan.Workload.Seed
	return s
}

// flagsGiven writes the flags that were given as arguments again.
func flagsGiven(f *pflag.FlagSet) (args []string) {
	f.Visit(func(flag *pflag.Flag) {
		if !slices.Contains(notRepeated, flag.Name) || slices.Contains([]string{"topology", "lock", "out"}, flag.Name) {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return args
}

func (e Env) ab(base context.Context, c *command, with *abFlags, args []string) int {
	ctx, s, done := onSignals(base)
	stop := s.stop
	defer done()
	t := &trial{e: e, c: c, out: filepath.Join(c.o.plan.Out, stamp("ab"))}
	err := t.check(stop, with, args)
	if err == nil {
		err = t.run(ctx, stop, with.pairs)
	}
	if len(t.pairs) == 0 {
		x := exit(stop, nil, nil, err)
		return e.refuse(c.o, x.Code, strings.Split(x.Reason, "\n")...)
	}
	result := compare.NewTrial(t.sides[0].name, t.sides[1].name, t.pairs, with.metrics)
	result.CheckGates(with.gates)
	e.complain(err)
	x := exit(stop, nil, result.Gates, err)
	for _, p := range t.pairs {
		if y := exit(stop, p[:], nil, err); y.Code == Violation || y.Code == Inconclusive && x.Code != Broken {
			x = worse(x, y)
		}
	}
	doc := struct {
		Schema int            `json:"schema"`
		Exit   Exit           `json:"exit"`
		Saved  string         `json:"saved"`
		Trial  *compare.Trial `json:"trial"`
	}{schema, x, t.out, result}
	writeErr := errors.Join(saveDocument(filepath.Join(t.out, "trial.json"), doc), e.notify(t.out, gateJudgements(result.Gates)),
		e.summarize("bench ab", result.WriteText))
	if c.o.json {
		return e.end(x, errors.Join(writeErr, e.document(doc)))
	}
	if x.Code == Violation {
		_, _ = fmt.Fprintln(e.Stdout, "SAFETY FAIL  "+x.Reason+"\n")
	}
	return e.end(x, errors.Join(writeErr, result.WriteText(e.Stdout)))
}

// worse is the exit that beats the other: a violation, a run that could not be carried out, one that is not
// conclusive, a regression.
func worse(a, b Exit) Exit {
	order := []int{Passed, Regression, Inconclusive, Broken, Violation}
	if slices.Index(order, b.Code) > slices.Index(order, a.Code) {
		return b
	}
	return a
}

// stamp names a directory for what belongs together.
func stamp(what string) string { return time.Now().UTC().Format("20060102-150405.000") + "-" + what }

func saveDocument(path string, doc any) error {
	return writeFile(path, os.O_TRUNC, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(doc)
	})
}

// trial is one in progress.
type trial struct {
	e     Env
	c     *command
	out   string
	sides [2]side
	jobs  [2]*harness.Job
	warm  harness.Warm
	watch *metricsServer
	pairs []compare.Pair
}

// check finds every mistake of both sides, those that both make once.
func (t *trial) check(ctx context.Context, with *abFlags, args []string) error {
	o := t.c.o
	o.chosen(&with.comparing)
	if with.pairs < 1 || with.pairs > maxPairs {
		o.mistake("--pairs %d: from 1 to %d", with.pairs, maxPairs)
	}
	if len(args) != 2 {
		o.mistake("ab takes two settings, as in: bench ab 'lock=redsync' 'lock=redislock'")
	}
	var problems []error
	for i, arg := range args[:min(len(args), 2)] {
		s := t.e.newSide(t.c, arg)
		t.sides[i] = s
		t.jobs[i] = t.checkSide(ctx, s, &problems)
	}
	var err error
	if t.watch, err = o.openMetrics(t.e); err != nil {
		o.mistake("%v", err)
	}
	if len(o.mistakes) > 0 {
		return &harness.UsageError{Mistakes: o.mistakes}
	}
	return errors.Join(problems...)
}

func (t *trial) checkSide(ctx context.Context, s side, problems *[]error) *harness.Job {
	o := t.c.o
	job, err := s.c.o.plan.Check(ctx, s.c.o.mistakes)
	var usage *harness.UsageError
	switch {
	case errors.As(err, &usage):
		for _, m := range usage.Mistakes {
			if !slices.Contains(o.mistakes, m) {
				o.mistakes = append(o.mistakes, m)
			}
		}
	case err != nil:
		*problems = append(*problems, err)
	case len(job.Combinations) != 1:
		o.mistake("%s: names %d combinations of topology and lock; ab compares one with one", s.name, len(job.Combinations))
	}
	if s.program != "" {
		if info, err := os.Stat(s.program); err != nil || info.IsDir() {
			o.mistake("%s: no program", s.name)
		}
	}
	return job
}

// run carries out the schedule. A pair that is not whole when it ends is left out.
func (t *trial) run(ctx, stop context.Context, pairs int) (err error) {
	defer func() {
		t.watch.close(ctx)
		err = errors.Join(err, t.warm.Close())
	}()
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return err
	}
	seed := t.c.o.plan.Workload.Seed
	var pair compare.Pair
	done := map[compare.Arm]bool{}
	for i, arm := range compare.Schedule(pairs, seed) {
		s := t.sides[int(arm)%2]
		if !t.c.o.quiet {
			_, _ = fmt.Fprintf(t.e.Stderr, "pair %d of %d: %s  %s\n", i/len(pair)+1, pairs, armNames[arm], s.name)
		}
		r, err := t.one(ctx, stop, s, seed+uint64(i/len(pair)))
		if err != nil || stop.Err() != nil {
			return err
		}
		pair[arm], done[arm] = *r, true
		if len(done) == len(pair) {
			t.pairs = append(t.pairs, pair)
			maps.DeleteFunc(done, func(compare.Arm, bool) bool { return true })
		}
	}
	return nil
}

var armNames = map[compare.Arm]string{compare.ArmA: "A ", compare.ArmB: "B ", compare.ArmTwin: "A'"}

// one makes one run of a side. As soon as one side is another build, both are run as programs of their own, so that
// the way of running them is no difference.
func (t *trial) one(ctx, stop context.Context, s side, seed uint64) (*results.Run, error) {
	s.c.o.plan.Workload.Seed, s.c.o.plan.Out = seed, t.out
	if t.sides[0].program+t.sides[1].program != "" {
		return t.byProgram(ctx, stop, s)
	}
	job, err := s.c.o.plan.Check(stop, nil)
	if err != nil {
		return nil, err
	}
	job.Warm = &t.warm
	job.Command = func(x harness.Combination) string { return s.c.o.repeat(s.c, x.Topology.Name, x.Lock.Name) }
	job.Progress = t.watch.tell
	runs, err := job.Run(ctx, stop)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}
