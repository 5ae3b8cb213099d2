package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/results"
)

// Bench runs the command "bench" and returns its exit code.
func Bench(ctx context.Context, e Env) int {
	if len(e.Args) > 0 {
		switch e.Args[0] {
		case "replay":
			return e.replay(ctx)
		case "report":
			return e.reportSaved(ctx)
		}
	}
	return e.execute(ctx, &cobra.Command{
		Use:   "bench",
		Short: "compare topologies and locks under load",
		Long: "bench starts Redis deployments, lets workers take a lock that guards a shared page-view counter on\n" +
			"each, and prints what it costs, who starves, and whether a page view was lost. Without flags: all\n" +
			"five topologies, each with the lock it is made for.\n\n" +
			"  bench report RUN...        print saved runs again; --html FILE writes them as one page",
		Example: "  bench\n  bench --topology single,redlock --workers 64 --duration 30s\n" +
			"  bench --topology single --lock none --workers 16 --duration 2s   # exits 1: page views are lost",
	}, false)
}

// execute runs a command that runs a plan.
func (e Env) execute(ctx context.Context, c *cobra.Command, verify bool) int {
	if len(e.Args) == 1 && e.Args[0] == crew.Command {
		return e.work(ctx)
	}
	code := Passed
	c.DisableFlagParsing = true // parse reports all mistakes at once
	c.SilenceErrors, c.SilenceUsage = true, true
	c.Version = harness.Version()
	c.SetOut(e.Stdout)
	c.SetErr(e.Stderr)
	c.SetArgs(e.Args)
	c.CompletionOptions.HiddenDefaultCmd = true
	o := newOptions(c, verify)
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	c.RunE = func(_ *cobra.Command, args []string) error {
		code = e.run(c, o, args)
		return nil
	}
	if err := c.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "error:", err)
		return Usage
	}
	return code
}

// work is a worker process. An interrupt at the terminal is the suite's business.
func (e Env) work(ctx context.Context) int {
	if err := crew.Child(ctx, e.Stdin, e.Stdout); err != nil {
		_, _ = fmt.Fprintln(e.Stderr, "error:", err)
		return Broken
	}
	return Passed
}

func (e Env) run(c *cobra.Command, o *options, args []string) int {
	o.parse(c.Flags(), args)
	for flag, show := range map[string]func() error{
		"help":    c.Help,
		"version": func() error { _, err := fmt.Fprintln(e.Stdout, c.Name(), c.Version); return err },
		"list":    func() error { return writeList(e.Stdout) },
	} {
		if f := c.Flags().Lookup(flag); f != nil && f.Changed {
			if show() != nil {
				return Broken
			}
			return Passed
		}
	}
	ctx, s, done := onSignals(c.Context())
	defer done()
	runs, err := e.carryOut(ctx, s, c, o)
	return e.report(o, exit(s.stop, runs, err), runs, err)
}

func (e Env) carryOut(ctx context.Context, s signals, c *cobra.Command, o *options) ([]results.Run, error) {
	job, err := o.plan.Check(s.stop, o.mistakes)
	if err != nil {
		return nil, err
	}
	job.Command = func(x harness.Combination) string { return o.command(c, c.Flags(), x.Topology.Name, x.Lock.Name) }
	var kept reports
	job.Kept = kept.save
	runs, err := e.watched(ctx, s, o, job)
	kept.compare(o.plan.Out)
	for _, problem := range kept.problems {
		_, _ = fmt.Fprintln(e.Stderr, "warning:", problem) // a run is a run without its report
	}
	return runs, err
}
