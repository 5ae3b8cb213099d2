package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/results/report"
)

// comparing has what all commands that compare runs need: metrics, gates and outputs. A gate is an assertion about a
// metric, such as response.p99<+15%.
type comparing struct {
	show  []results.Metric
	gates []compare.ChangeGate
	view  *compare.View // content of the outputs
}

// comparingFlags declares the flags of comparing.
func (o *options) comparingFlags(to *comparing) {
	show := func(text string) (err error) {
		to.show, err = results.FindMetrics(settings.Split(text))
		return err
	}
	preset := strings.Join(results.Headline, ",")
	o.Add(flag(session, "show", "the numbers to compare"), "name,...", preset,
		show).Complete = settings.CompleteList(allMetrics.Names(), false)
	to.show, _ = results.FindMetrics(results.Headline) // an error is impossible: these metrics exist
	o.gateFlag("what may not become worse, or the exit code is 5; may be given several times: "+
		"a change with its sign, as in\nresponse.p99<+10%, or "+
		compare.RegressionGate+", for anything that is more than noise", func(text string) error {
		g, err := compare.ParseChangeGate(text)
		to.gates = append(to.gates, g)
		return err
	})
	page := func(w io.Writer, _ *Document) error { return report.WriteComparison(to.view, w) }
	comment := func(w io.Writer, _ *Document) error { return to.view.WriteMarkdown(w) }
	o.has(output{name: "html", what: "write the comparison as one page to this file", write: page},
		output{name: "markdown", what: "write it as a comment on a pull request to this file", write: comment})
}

// summarize appends the comparison to the summary of a CI step, if there is one (see stepSummary).
func (c *comparing) summarize(e Env) error {
	c.view.Command = e.called("bench")
	return e.stepSummary(c.view.WriteMarkdown)
}

// called returns the command line as the user typed it.
func (e Env) called(program string) string {
	return strings.Join(append([]string{program}, human.Names(e.Args, quote)...), " ")
}

// shown returns the metrics to compare: those of --show, and those of the gates.
func (c *comparing) shown() []results.Metric {
	all := c.show
	for _, g := range c.gates {
		if g.Metric.Name != "" && !slices.ContainsFunc(all,
			func(m results.Metric) bool { return m.Name == g.Metric.Name }) {
			all = append(all, g.Metric)
		}
	}
	return all
}

func (e Env) compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "compare A B [C...]", Short: "tell what changed between saved runs, and what is noise",
		Args: e.takes(2, unlimited),
		Long: "compare reads saved runs and compares every side with the first: medians with their confidence\n" +
			"intervals, and which differences are more than noise. A side is one or more runs, with commas in\n" +
			"between: directories of runs or of several, patterns of them, or names (also their beginnings) where\n" +
			"runs are saved. Repeat runs (bench --count) for a side to have a spread.",
		Example: "  bench --topology single --count 6 --out before\n  bench compare before after\n" +
			"  bench compare 'runs/*-lease-*' 'runs/*-redsync-*' --by topology",
		ValidArgsFunction: completeRuns,
	}
	o := newOptions(c, harness.Default())
	var with comparing
	var by []string
	groupings := settings.Words(compare.Groupings()...)
	settings.Some(&o.Set, flag(session, "by",
		"what to compare apart: "+groupings.String()+" (default: topology and lock, if all sides have the same)"), &by,
		groupings)
	o.comparingFlags(&with)
	o.out("where runs are saved")
	o.has(jsonOutput)
	return e.command(c, o, func(ctx context.Context, args []string) int { return e.compare(ctx, o, &with, by, args) })
}

func (e Env) compare(ctx context.Context, o *options, with *comparing, by, args []string) int {
	var sides []compare.Side
	var damaged error
	for _, arg := range args {
		runs, err := savedRuns(arg, o.plan.Out)
		if errors.Is(err, results.ErrDamaged) {
			damaged = errors.Join(damaged, err)
		} else if err != nil {
			o.Mistake("", "%v", err)
		}
		sides = append(sides, compare.Side{Name: sideName(arg), Runs: runs})
	}
	if err := errors.Join(o.invalid(), damaged); err != nil {
		return e.refuse(ctx, o, err)
	}
	nameSides(sides, args)
	c := compare.New(sides, by, with.shown())
	c.CheckGates(with.gates)
	x := exit(ctx, results.Whole{}, c.Gates, nil).undecided(c.Undecided())
	with.view = c.View()
	document := Document{Schema: schema, Exit: x, Comparison: c}
	return e.answer(o, result{exit: x, document: document, text: c.WriteText, judged: gateJudgements(c.Gates),
		err: with.summarize(e)})
}

// nameSides gives short names to sides that were given as patterns or lists. If all runs of a side have the same
// topology and lock, these are its new name. If two sides would get equal names, all keep their old names.
func nameSides(sides []compare.Side, args []string) {
	names, seen := make([]string, len(sides)), map[string]bool{}
	for i, s := range sides {
		if names[i] = s.Name; strings.ContainsAny(args[i], ",*?[") && len(s.Runs) > 0 {
			names[i] = s.Runs[0].Combination()
		}
		for k := range s.Runs {
			if s.Runs[k].Combination() != s.Runs[0].Combination() {
				names[i] = s.Name
			}
		}
		if seen[names[i]] {
			return
		}
		seen[names[i]] = true
	}
	for i := range sides {
		sides[i].Name = names[i]
	}
}

// sideName returns the last part of a path as the name of a side. A pattern or list is returned unchanged.
func sideName(arg string) string {
	arg = strings.TrimRight(arg, "/")
	if strings.ContainsAny(arg, ",*?[") {
		return arg
	}
	return filepath.Base(arg)
}
