package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/matrix"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// matrixOptions are the flags of "verify matrix".
type matrixOptions struct {
	options
	choice   matrix.Pattern
	parallel int
	resume   string
}

// Most of the time cells wait for leases, so several are run at a time.
const (
	inParallel     = 4
	mostInParallel = 64
)

func (e Env) matrixCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "matrix", Short: "locks x topologies x faults against the expected outcomes", Args: takes(0, 0),
		Long: "matrix runs locks on topologies under faults, a short run each, judges them and compares what was found with\n" +
			"what is expected: right locks must pass where nothing they rely on is broken, wrong ones must be caught. A\n" +
			"cell that must fail and passes is as red as one that must pass and fails.",
		Example: "  verify matrix\n  verify matrix --lock lease,plain-del --topology single\n  verify matrix --resume results/runs/matrix-20260102-150405",
	}
	o := &matrixOptions{options: *newOptions(c, e.benchPlan()), parallel: inParallel}
	o.names(flag{session, "lock", "these locks, with wildcards; right, broken (default: a set that shows what matters)"}, &o.choice.Locks, known.Names())
	o.names(flag{session, "topology", "on these topologies"}, &o.choice.Topologies, topologies.Names())
	o.names(flag{session, "fault", "with these faults; none, survived, fatal, caught"}, &o.choice.Faults, faultNames())
	o.names(flag{session, "counter", "with the page views counted there"}, &o.choice.Counters, workload.CounterNames())
	o.integer(flag{session, "processes", "how many processes the workers live in"}, &o.choice.Processes, 0)
	o.agentsFlag(localAgents+"n", o.localAgents, "let n agents on this machine do the work, with one cell at a time")
	o.integer(flag{session, "parallel", "how many cells are run at a time"}, &o.parallel, mostInParallel)
	o.seed("repeats another matrix (default: drawn and printed)")
	o.text(flag{session, "resume", "go on with a matrix that was interrupted"}, "dir", &o.resume)
	o.text(flag{session, "redis-server", "the server to start (default: looked for)"}, "path", &o.plan.RedisServer)
	o.out("where the matrix is saved")
	o.outputFlags()
	return e.command(c, &o.options, interruptible(func(ctx context.Context, s signals, _ []string) int {
		return e.matrix(ctx, s.stop, c.Root(), o)
	}))
}

func (e Env) matrix(ctx, stop context.Context, root *cobra.Command, o *matrixOptions) int {
	defer e.coordinate(&o.options)()
	run, leftOut, err := o.prepare(stop)
	if err != nil {
		return e.refuse(stop, &o.options, err)
	}
	run.Command = func(p harness.Plan) string { return repeat(root, p) }
	start := time.Now()
	run.Tell = e.tellCell(o.quiet, start)
	e.say(&o.options, "%s, about %v", human.Quantity(len(run.Cells), "cell"), run.Expected().Round(time.Second))
	all, err := run.Carry(ctx, stop)
	if err = errors.Join(err, run.Log.Close()); err != nil {
		e.complain(fmt.Errorf("%w\nto go on: verify matrix --resume %s", err, run.Dir))
	}
	s := matrix.Summarize(all)
	s.Seed, s.LeftOut, s.Took = run.Seed, leftOut, time.Since(start)
	x := matrixExit(stop, s, err)
	document := Document{Schema: schema, Exit: x, Matrix: &s, Cells: append([]matrix.Result{}, all...)}
	return e.answer(&o.options, result{x, document, func(w io.Writer) error { return matrix.WriteText(w, all, s) }, nil})
}

// prepare finds every mistake, chooses the cells and opens the log: a new one, or that of the matrix to go on with, whose
// seed counts.
func (o *matrixOptions) prepare(stop context.Context) (run *matrix.Run, leftOut []matrix.LeftOut, err error) {
	for _, m := range o.choice.Mistakes() {
		o.mistake("%s", m)
	}
	if fleet := o.plan.Fleet; fleet.Agents != "" {
		if o.choice.Processes > 0 || o.differs("parallel") {
			o.mistake("--agents: each agent is a process, and serves one cell at a time: leave out --processes and --parallel")
		}
		o.choice.Processes, o.parallel = fleet.Count, 1
	}
	if err := o.invalid(); err != nil {
		return nil, nil, err
	}
	server, err := topologies.FindServer(stop, o.plan.RedisServer)
	if err != nil {
		return nil, nil, err
	}
	patterns := matrix.BuiltIn.Set
	if p := o.choice; len(slices.Concat(p.Locks, p.Topologies, p.Faults, p.Counters)) > 0 || p.Processes > 0 {
		patterns = []matrix.Pattern{p}
	}
	choice := matrix.Choose(patterns, server)
	run = &matrix.Run{Expectations: matrix.BuiltIn, Cells: choice.Cells, Seed: o.plan.Workload.Seed, Parallel: o.parallel, RedisServer: o.plan.RedisServer,
		Fleet: o.plan.Fleet}
	if run.Dir = o.resume; run.Dir != "" {
		run.Log, run.Seed, err = matrix.Resume(run.Dir)
	} else {
		run.Dir = folder(o.plan, "matrix")
		run.Log, err = matrix.Create(run.Dir, run.Seed)
	}
	if err != nil {
		return nil, nil, usage("%v", err)
	}
	return run, choice.LeftOut, nil
}

// localAgents reads --agents where servers are started.
func (o *options) localAgents(text string) error {
	if !strings.HasPrefix(text, localAgents) {
		return errors.New(localAgents + "N, as the matrix starts servers on this machine")
	}
	return o.agents(text)
}

func (e Env) tellCell(quiet bool, start time.Time) func(int, int, *matrix.Result) {
	return func(done, of int, r *matrix.Result) {
		if quiet && !r.Red {
			return
		}
		word := "as expected"
		if r.Red {
			word = "RED: " + r.Why
		}
		rest := time.Since(start) / time.Duration(done) * time.Duration(of-done)
		_, _ = fmt.Fprintf(e.Stderr, "[%d/%d] %s: %s, %s (%s)%s\n", done, of, r.Cell, r.Word(), word,
			r.Took.Round(100*time.Millisecond), left(rest))
	}
}

// matrixExit finds the code and the reason. Red beats what could not be run, which beats an interrupt.
func matrixExit(stop context.Context, s matrix.Summary, err error) Exit {
	switch x := exit(stop, results.Whole{}, nil, err); {
	case s.Red > s.Broken:
		return Exit{Violation, fmt.Sprintf("%d of %d cells are red", s.Red, s.Cells)}
	case s.Broken > 0:
		return Exit{Broken, fmt.Sprintf("%d of %d cells could not be run", s.Broken, s.Cells)}
	case x.Code == Passed && s.Cells == 0:
		return Exit{Inconclusive, "no cell was chosen that can be run here"}
	default:
		return x
	}
}
