package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/tour"
	"hammerlock/results"
)

func (e Env) tourCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "tour", Short: "how locks fail, and why, told with a run for each chapter in about a minute",
		Args: e.takes(0, 0),
		Long: "tour tells how locks fail, recipe by recipe, up to the one that does not and to what no lock can\n" +
			"prevent. Each chapter is a short run on real servers, with its verdict and the operations that prove\n" +
			"it. One that shows too little, as on a busy machine, is run again, twice as long.",
	}
	o := newOptions(c, e.benchPlan())
	o.seed("repeats another tour (default: drawn)")
	o.Text(flag(session, "redis-server", "the server to start (default: looked for)"), "path", &o.plan.RedisServer)
	o.out("where the runs are saved")
	o.has(webOutput, metricsOutput, jsonOutput)
	o.tui = tuiOff
	return e.command(c, o, interruptible(func(ctx context.Context, s signals, _ []string) int {
		return e.tour(ctx, s, c.Root(), o)
	}))
}

// errTourEnded ends a tour after its series has ended. The error of the series has the reason.
var errTourEnded = errors.New("the tour was ended")

func (e Env) tour(ctx context.Context, s signals, root *cobra.Command, o *options) int {
	t := tour.Tour{Seed: o.plan.Workload.Seed, RedisServer: o.plan.RedisServer, Out: e.Stdout,
		Command: func(p harness.Plan) string { return repeat(root, p) }}
	if o.json {
		t.Out = io.Discard
	}
	for _, c := range slices.Backward(e.More.Counters) {
		if c.Fenced && c.Server.Installed(s.stop) == nil {
			t.Database = c
		}
	}
	x := &series{e: e, o: o, root: root, dir: folder(o.plan, "tour"), warm: new(harness.Warm), tells: true}
	wrong, undecided, runs := 0, 0, []results.Run(nil)
	err := x.carryOut(ctx, s, func(context.Context) error { return errors.Join(o.invalid(), harness.Saves(x.dir)) },
		func(yield func(*step) bool) {
			wrong, undecided, x.failure = t.Tell(func(p harness.Plan) (*results.Run, error) {
				st := &step{plan: p}
				goesOn := yield(st)
				if runs = append(runs, st.runs...); !goesOn || len(st.runs) == 0 {
					return nil, errTourEnded
				}
				return &st.runs[0], nil
			})
			if errors.Is(x.failure, errTourEnded) {
				x.failure = nil
			}
		})
	if len(runs) == 0 {
		return e.refuse(s.stop, o, err)
	}
	all, whole := len(t.Chapters()), results.Whole{}
	if wrong > 0 {
		whole.Failed = []string{fmt.Sprintf("%d of %d chapters had another outcome than expected", wrong, all)}
	}
	if undecided > 0 {
		whole.Open = []string{fmt.Sprintf("%d of %d chapters are inconclusive, and no other had an unexpected outcome",
			undecided, all)}
	}
	exit := exit(s.stop, whole, nil, err)
	if err == nil && exit.Reason != "" {
		err = errors.New(exit.Reason)
	}
	e.complain(err)
	return e.answer(o, result{exit: exit, document: Document{Schema: schema, Exit: exit, Saved: x.dir, Runs: runs},
		text: func(w io.Writer) error {
			if exit.Code != Passed {
				return nil
			}
			_, err := fmt.Fprintf(w, "%d chapters, all with the expected outcome, in %s; the runs are in %s\n", all,
				time.Since(x.begun).Round(time.Second), x.dir)
			return err
		}})
}
