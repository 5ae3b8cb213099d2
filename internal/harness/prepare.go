package harness

import (
	"context"
	"errors"

	"hammerlock/results"
)

// Prepared is a run whose servers are up and whose workers wait to be let loose, so that the next run of a show can
// be made ready while one goes on.
type Prepared struct{ stage *stage }

// Prepare brings up what the job's first combination needs.
func (j *Job) Prepare(ctx context.Context) (*Prepared, error) {
	c := j.Combinations[0]
	s := &stage{job: j, combo: c, tell: func(e Event) {
		e.Combination, e.Number, e.Of = c, 1, 1
		j.Progress(e)
	}}
	if err := s.up(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &Prepared{s}, nil
}

// Run carries the run out, as Job.Run does.
func (p *Prepared) Run(ctx, stop context.Context) (*results.Run, error) {
	return p.stage.run(ctx, stop)
}

// Close ends the servers.
func (p *Prepared) Close() error { return p.stage.close() }
