package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/tour"
)

func (e Env) tourCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "tour", Short: "how locks fail, and why, told with a run for each chapter in about a minute",
		Args: takes(0, 0),
		Long: "tour tells how locks fail, recipe by recipe, up to the one that does not and to what no lock can prevent. Each\n" +
			"chapter is a short run on real servers, with its verdict and the operations that prove it. One that shows too\n" +
			"little, as on a busy machine, is run again, twice as long.",
	}
	o := newOptions(c, e.benchPlan())
	o.seed("repeats another tour (default: drawn)")
	o.Text(flag(session, "redis-server", "the server to start (default: looked for)"), "path", &o.plan.RedisServer)
	o.out("where the runs are saved")
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, _ []string) int {
		return e.tour(ctx, s.stop, c.Root(), o)
	}))
}

func (e Env) tour(ctx, stop context.Context, root *cobra.Command, o *options) int {
	if err := o.invalid(); err != nil {
		return e.refuse(stop, o, err)
	}
	start := time.Now()
	t := tour.Tour{Dir: folder(o.plan, "tour"), Seed: o.plan.Workload.Seed, RedisServer: o.plan.RedisServer,
		Out:     e.Stdout,
		Command: func(p harness.Plan) string { return repeat(root, p) }}
	for _, c := range slices.Backward(e.More.Counters) {
		if c.Fenced && c.Server.Installed(stop) == nil {
			t.Database = c
		}
	}
	all := len(t.Chapters())
	wrong, undecided, err := t.Tell(ctx, stop)
	switch {
	case err != nil:
		return e.refuse(stop, o, err)
	case wrong > 0:
		e.complain(fmt.Errorf("%d of %d chapters had another outcome than expected", wrong, all))
		return Violation
	case undecided > 0:
		e.complain(fmt.Errorf("%d of %d chapters are inconclusive, and no other had an unexpected outcome", undecided,
			all))
		return Inconclusive
	}
	_, err = fmt.Fprintf(e.Stdout, "%d chapters, all with the expected outcome, in %s; the runs are in %s\n", all,
		time.Since(start).Round(time.Second), t.Dir)
	return e.end(Exit{}, err)
}
