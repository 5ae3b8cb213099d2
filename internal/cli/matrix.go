package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/matrix"
	"hammerlock/topologies"
)

// matrixOptions are the flags of "verify matrix".
type matrixOptions struct {
	options
	choice       matrix.Pattern
	parallel     int
	resume       string
	markdown     string
	expectations string
}

// inParallel is how many cells are run at a time: most of their time they wait for leases.
const inParallel = 4

func (e Env) matrixCommand() *command {
	o := &matrixOptions{parallel: inParallel}
	o.plan.Out, o.plan.Workload.Seed = "results/runs", drawSeed()
	c := &cobra.Command{
		Use: "matrix", Short: "locks x topologies x faults against the expected outcomes",
		Long: "matrix runs locks on topologies under faults, a short run each, judges them and compares what was found with\n" +
			"what is expected: right locks must pass where nothing they rely on is broken, wrong ones must be caught. A\n" +
			"cell that must fail and passes is as red as one that must pass and fails.",
		Example: "  verify matrix\n  verify matrix --lock lease,plain-del --topology single\n  verify matrix --resume results/runs/matrix-20260102-150405",
	}
	o.flags(c)
	completions(c)
	return &command{Command: c, o: &o.options, run: func(base context.Context, _ *command, _ []string) int {
		ctx, s, done := onSignals(base)
		defer done()
		return e.carryMatrix(ctx, s.stop, o)
	}}
}

// fail says what went wrong and returns the code for it.
func (e Env) fail(code int, err error) int {
	e.complain(err)
	return code
}

func joined(mistakes []string) string { return strings.Join(mistakes, "\n") }

func (o *matrixOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	o.names(f, "lock", &o.choice.Locks, "these locks, with wildcards; right, broken (default: a set that shows what matters)")
	o.names(f, "topology", &o.choice.Topologies, "on these topologies")
	o.names(f, "fault", &o.choice.Faults, "with these faults; none, survived, fatal, caught")
	o.names(f, "counter", &o.choice.Counters, "with the page views counted there")
	o.integer(f, "processes", &o.choice.Processes, "how many processes the workers live in")
	o.integer(f, "parallel", &o.parallel, "how many cells are run at a time")
	o.add(f, "seed", "n", "", "repeats another matrix (default: drawn and printed)", o.seed)
	o.text(f, "resume", "dir", func(s string) { o.resume = s }, "", "go on with a matrix that was interrupted")
	o.text(f, "expectations", "file", func(s string) { o.expectations = s }, "", "what is expected, instead of what the suite comes with")
	o.text(f, "markdown", "file", func(s string) { o.markdown = s }, "", "write the table as Markdown, too")
	o.text(f, "redis-server", "path", func(s string) { o.plan.RedisServer = s }, "", "the server to start (default: looked for)")
	o.text(f, "out", "dir", func(s string) { o.plan.Out = s }, o.plan.Out, "where the matrix is saved")
	f.BoolVar(&o.json, "json", false, "print one JSON document instead of a table")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress lines")
}

// carryMatrix runs the matrix and answers for it.
func (e Env) carryMatrix(ctx, stop context.Context, o *matrixOptions) int {
	o.mistakes = append(o.mistakes, matrix.Select(o.choice)...)
	expected, err := o.expect()
	if err != nil {
		o.mistakes = append(o.mistakes, err.Error())
	}
	if o.parallel < 1 || o.parallel > 64 {
		o.mistake("--parallel %d: from 1 to 64", o.parallel)
	}
	if len(o.mistakes) > 0 {
		return e.fail(Usage, errors.New(joined(o.mistakes)))
	}
	server, err := topologies.FindServer(stop, o.plan.RedisServer)
	if err != nil {
		return e.fail(Broken, err)
	}
	run := &matrix.Run{Expectations: expected, Seed: o.plan.Workload.Seed, Parallel: o.parallel, RedisServer: o.plan.RedisServer}
	if run.Log, err = o.log(run); err != nil {
		return e.fail(Usage, err)
	}
	choice := matrix.Choose(o.patterns(expected), server)
	run.Cells = choice.Cells
	run.Tell = e.tellCell(o.quiet)
	start := time.Now()
	all, err := run.Carry(ctx, stop)
	err = errors.Join(err, run.Log.Close())
	s := matrix.Summarize(all)
	s.Seed, s.LeftOut, s.Took = run.Seed, choice.LeftOut, time.Since(start)
	x := matrixExit(stop, s, err)
	if werr := e.writeMatrix(o, all, s, x); werr != nil {
		return e.fail(max(x.Code, Broken), werr)
	}
	if err != nil {
		_, _ = fmt.Fprintf(e.Stderr, "error: %v\nto go on: verify matrix --resume %s\n", err, run.Dir)
	}
	return x.Code
}

// expect reads the expectations.
func (o *matrixOptions) expect() (*matrix.Expectations, error) {
	if o.expectations == "" {
		return matrix.BuiltIn, nil
	}
	text, err := os.ReadFile(o.expectations)
	if err != nil {
		return nil, err
	}
	return matrix.ParseExpectations(o.expectations, text)
}

// log opens the matrix's directory: a new one, or the one to go on with, whose seed counts.
func (o *matrixOptions) log(run *matrix.Run) (log *matrix.Log, err error) {
	if o.resume != "" {
		run.Dir = o.resume
		log, run.Seed, err = matrix.Resume(run.Dir)
		return log, err
	}
	run.Dir = filepath.Join(o.plan.Out, fmt.Sprintf("matrix-%s-%d", time.Now().UTC().Format("20060102-150405"), run.Seed))
	return matrix.Create(run.Dir, run.Seed)
}

// patterns are what flags choose; without any, the set of the expectations.
func (o *matrixOptions) patterns(e *matrix.Expectations) []matrix.Pattern {
	p := o.choice
	if len(slices.Concat(p.Locks, p.Topologies, p.Faults, p.Counters)) == 0 && p.Processes == 0 {
		return e.Set
	}
	return []matrix.Pattern{p}
}

func (e Env) tellCell(quiet bool) func(int, int, *matrix.Result) {
	return func(done, of int, r *matrix.Result) {
		if quiet && !r.Red {
			return
		}
		word := "as expected"
		if r.Red {
			word = "RED: " + r.Why
		}
		_, _ = fmt.Fprintf(e.Stderr, "[%d/%d] %s: %s, %s (%s)\n", done, of, r.Cell, r.Word(), word,
			r.Took.Round(100*time.Millisecond))
	}
}

// matrixExit finds the code and the reason. Red beats what could not be run, which beats an interrupt.
func matrixExit(stop context.Context, s matrix.Summary, err error) Exit {
	var signal interrupt
	switch {
	case s.Red > s.Broken:
		return Exit{Code: Violation, Reason: fmt.Sprintf("%d of %d cells are red", s.Red, s.Cells)}
	case s.Broken > 0:
		return Exit{Code: Broken, Reason: fmt.Sprintf("%d of %d cells could not be run", s.Broken, s.Cells)}
	case errors.As(context.Cause(stop), &signal):
		return Exit{Code: interrupted + int(signal.signal), Reason: signal.Error()}
	case err != nil:
		return Exit{Code: Broken, Reason: err.Error()}
	case s.Cells == 0:
		return Exit{Code: Inconclusive, Reason: "no cell was chosen that can be run here"}
	default:
		return Exit{Code: Passed}
	}
}

func (e Env) writeMatrix(o *matrixOptions, all []matrix.Result, s matrix.Summary, x Exit) error {
	if o.markdown != "" {
		file, err := os.Create(o.markdown)
		if err != nil {
			return err
		}
		if err := errors.Join(matrix.WriteMarkdown(file, all, s), file.Close()); err != nil {
			return err
		}
	}
	if !o.json {
		return matrix.WriteText(e.Stdout, all, s)
	}
	if all == nil {
		all = []matrix.Result{}
	}
	return e.document(struct {
		Schema int             `json:"schema"`
		Exit   Exit            `json:"exit"`
		Matrix matrix.Summary  `json:"matrix"`
		Cells  []matrix.Result `json:"cells"`
	}{schema, x, s, all})
}
