package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// series makes runs one after the other on servers that stay up.
type series struct {
	e    Env
	o    *options
	root *cobra.Command
	dir  string // where the runs are saved
	warm harness.Warm
	// watched makes events carry snapshots, for outputs that show them.
	watched bool
	outputs
}

// newSeries is a series with a directory of its own.
func newSeries(e Env, c *cobra.Command, o *options) *series {
	stamp := time.Now().UTC().Format("20060102-150405.000") + "-" + c.Name()
	return &series{e: e, o: o, root: c.Parent(), dir: filepath.Join(o.plan.Out, stamp)}
}

// run makes one run of a plan with one combination. There is none if stop is done before it begins.
func (s *series) run(ctx, stop context.Context, p harness.Plan) (*results.Run, error) {
	p.Out = s.dir
	job, err := p.Check(stop, nil)
	if err != nil {
		return nil, err
	}
	job.Warm, job.Command, job.Progress, job.Killed = &s.warm, repeatRun(s.root, p), s.tell, s.e.foundKilled
	job.Watched = s.watched
	runs, err := job.Run(ctx, stop)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	return &runs[0], nil
}

func (s *series) close(ctx context.Context) error {
	return errors.Join(s.outputs.close(ctx, ""), s.warm.Close())
}

// exit is how a command ends whose runs were judged.
func (s *series) exit(stop context.Context, runs []results.Run, gates []compare.GateResult, err error) Exit {
	return exit(stop, results.Weigh(judgements(s.dir, runs), nil, "", nil), gates, err)
}

// save writes a document beside the runs that it is made of.
func (s *series) save(file string, document any) error {
	return writeFile(filepath.Join(s.dir, file), os.O_TRUNC, encode(document))
}
