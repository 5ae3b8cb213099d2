package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/results"
	"hammerlock/results/compare"
)

// comparing is what comparisons are asked for.
type comparing struct {
	names   []string
	metrics []results.Metric
	gates   []compare.ChangeGate
}

// comparingFlags declares the flags of commands that compare.
func (o *options) comparingFlags(c *cobra.Command, to *comparing) {
	f := c.Flags()
	to.names = results.Headline
	o.names(f, "show", &to.names, "the numbers to compare")
	if f.Lookup("gate") == nil {
		o.gateFlag(f, "", nil)
	}
	gate := f.Lookup("gate")
	gate.Usage = "what may not become worse, or the exit code is 5; may be given several times: a change with its sign, as in\nresponse.p99<+10%, or " +
		compare.RegressionGate + ", for anything that is more than noise"
	gate.Value.(*value).set = func(text string) error {
		g, err := compare.ParseChangeGate(text)
		to.gates = append(to.gates, g)
		return err
	}
}

// chosen finds the metrics that were asked for; gated ones are compared as well.
func (o *options) chosen(c *comparing) {
	names := slices.Clone(c.names)
	for _, g := range c.gates {
		if g.Metric.Name != "" && !slices.Contains(names, g.Metric.Name) {
			names = append(names, g.Metric.Name)
		}
	}
	if len(names) == 0 {
		o.mistake("--show names none: there is %s", results.MetricNames())
	}
	for _, name := range names {
		m, err := results.FindMetric(name)
		if err != nil {
			o.mistake("--show: %v", err)
			continue
		}
		c.metrics = append(c.metrics, m)
	}
}

func (e Env) compareCommand() *command {
	c := &cobra.Command{
		Use: "compare A B [C...]", Short: "tell what changed between saved runs, and what is noise",
		Long: "compare reads saved runs and compares every side with the first: medians with their confidence intervals, and\n" +
			"which differences are more than noise. A side is one or more directories, with commas in between or as a\n" +
			"pattern: runs, or directories of runs. Repeat runs (--count) for a side to have a spread.",
		Example:           "  bench --topology single --count 6 --out before\n  bench compare before after\n  bench compare 'runs/*-lease-*' 'runs/*-redsync-*' --by topology",
		ValidArgsFunction: completeRuns,
	}
	o := &options{}
	var with comparing
	var by []string
	f := c.Flags()
	f.SortFlags = false
	o.names(f, "by", &by, "what to compare apart: "+strings.Join(compare.Groupings(), ", ")+" (default: topology and lock, if all sides have the same)")
	o.comparingFlags(c, &with)
	f.BoolVar(&o.json, "json", false, "print one JSON document instead of tables")
	completions(c)
	return &command{Command: c, o: o, takes: "A B [C...]", run: func(ctx context.Context, _ *command, args []string) int {
		return e.compare(ctx, o, &with, by, args)
	}}
}

func (e Env) compare(ctx context.Context, o *options, with *comparing, by, args []string) int {
	o.chosen(with)
	for _, name := range by {
		if !slices.Contains(compare.Groupings(), name) {
			o.mistake("--by %q: there is %s", name, strings.Join(compare.Groupings(), ", "))
		}
	}
	if len(args) < 2 {
		o.mistake("compare takes two sides or more: bench compare A B")
	}
	var sides []compare.Side
	for _, arg := range args {
		side := compare.Side{Name: sideName(arg)}
		var err error
		if side.Runs, err = savedRuns(arg); err != nil {
			o.mistake("%v", err)
		}
		sides = append(sides, side)
	}
	if len(o.mistakes) > 0 {
		return e.refuse(o, Usage, o.mistakes...)
	}
	c := compare.New(sides, by, with.metrics)
	c.CheckGates(with.gates)
	x := exit(ctx, nil, c.Gates, nil)
	err := errors.Join(e.announce(gateJudgements(c.Gates)), e.summarize("bench compare", c.WriteText))
	if o.json {
		return e.end(x, e.document(struct {
			Schema     int                 `json:"schema"`
			Exit       Exit                `json:"exit"`
			Comparison *compare.Comparison `json:"comparison"`
		}{schema, x, c}))
	}
	if err == nil {
		err = c.WriteText(e.Stdout)
	}
	return e.end(x, err)
}

// sideName is what a person calls a side: the last part of its path.
func sideName(arg string) string {
	arg = strings.TrimRight(arg, "/")
	if strings.ContainsAny(arg, ",*?[") {
		return arg
	}
	return filepath.Base(arg)
}

// savedRuns reads the runs that patterns name: directories of runs, and of directories of runs.
func savedRuns(patterns string) (runs []results.Run, err error) {
	var dirs []string
	for pattern := range strings.SplitSeq(patterns, ",") {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", pattern, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no such run", pattern)
		}
		for _, dir := range found {
			dirs = append(dirs, runsIn(dir)...)
		}
	}
	seen := map[string]bool{}
	for _, dir := range dirs {
		r, err := results.ReadRun(dir)
		if err != nil {
			return nil, err
		}
		if !seen[r.Name] {
			runs = append(runs, *r)
		}
		seen[r.Name] = true // "latest" is another one's name
	}
	return runs, nil
}

// runsIn is the directory, if it is a run, or the runs in it.
func runsIn(dir string) []string {
	if _, err := os.Stat(filepath.Join(dir, results.RunFile)); err == nil {
		return []string{dir}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*", results.RunFile))
	if len(files) == 0 {
		return []string{dir} // to be told that it is none
	}
	var dirs []string
	for _, file := range files {
		dirs = append(dirs, filepath.Dir(file))
	}
	return dirs
}
