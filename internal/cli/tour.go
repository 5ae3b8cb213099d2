package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/matrix"
)

// tourCommand tells the story of locks, each chapter with a run.
func (e Env) tourCommand() *command {
	o := &options{}
	o.plan.Out, o.plan.Workload.Seed = "results/runs", drawSeed()
	c := &cobra.Command{
		Use: "tour", Short: "how locks fail, and why, told with a run for each chapter in about a minute",
		Long: "tour tells how locks fail, recipe by recipe, up to the one that does not and to what no lock can prevent. Each\n" +
			"chapter is a short run on real servers, with its verdict and the operations that prove it.",
	}
	f := c.Flags()
	f.SortFlags = false
	o.add(f, "seed", "n", "", "repeats another tour (default: drawn)", o.seed)
	o.text(f, "redis-server", "path", func(s string) { o.plan.RedisServer = s }, "", "the server to start (default: looked for)")
	o.text(f, "out", "dir", func(s string) { o.plan.Out = s }, o.plan.Out, "where the runs are saved")
	return &command{Command: c, o: o, run: func(base context.Context, _ *command, _ []string) int {
		if len(o.mistakes) > 0 {
			return e.fail(Usage, errors.New(joined(o.mistakes)))
		}
		ctx, s, done := onSignals(base)
		defer done()
		return e.tellTour(ctx, s.stop, o)
	}}
}

func (e Env) tellTour(ctx, stop context.Context, o *options) int {
	t := matrix.Tour{Seed: o.plan.Workload.Seed, RedisServer: o.plan.RedisServer, Out: e.Stdout}
	start := time.Now()
	t.Dir = filepath.Join(o.plan.Out, fmt.Sprintf("tour-%s-%d", start.UTC().Format("20060102-150405"), t.Seed))
	wrong, err := t.Tell(ctx, stop)
	var signal interrupt
	switch {
	case errors.As(context.Cause(stop), &signal):
		return e.fail(interrupted+int(signal.signal), signal)
	case err != nil:
		return e.fail(Broken, err)
	case wrong > 0:
		return e.fail(Violation, fmt.Errorf("%d of %d chapters did not come out as they were told", wrong, len(matrix.Chapters)))
	}
	_, err = fmt.Fprintf(e.Stdout, "%d chapters, all as they were told, in %s; the runs are in %s\n", len(matrix.Chapters),
		time.Since(start).Round(time.Second), t.Dir)
	if err != nil {
		return Broken
	}
	return Passed
}
