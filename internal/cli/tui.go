package cli

import (
	"context"
	"errors"
	"fmt"

	"hammerlock/internal/dashboard"
	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// The values of --tui.
const (
	tuiAuto = "auto"
	tuiOn   = "on"
	tuiOff  = "off"
)

// openDashboard takes the terminal if a dashboard is wanted and possible; otherwise it returns nil, and plain lines do.
func (e Env) openDashboard(o *options, options dashboard.Options) (*dashboard.Dashboard, error) {
	if o.tui == tuiOff || o.tui == tuiAuto && (o.json || o.quiet) {
		return nil, nil
	}
	err := dashboard.Fits(e.terminals[0], e.terminals[1], e.Getenv)
	switch {
	case err != nil && o.tui == tuiAuto:
		return nil, nil
	case err != nil && !errors.Is(err, dashboard.ErrSmall):
		return nil, usage("--tui on: the dashboard needs a terminal: %v; leave --tui out, or --web :0 shows the run in a browser", err)
	}
	d, err := dashboard.Start(options, e.Getenv)
	if err != nil && o.tui == tuiOn {
		return nil, fmt.Errorf("start the dashboard: %w", err)
	}
	if err != nil {
		_, _ = fmt.Fprintf(e.Stderr, "no dashboard: %v\n", err)
	}
	return d, nil
}

// frames makes a snapshot of what a job reports.
type frames struct{ last *measure.Snapshot }

func (f *frames) next(e harness.Event) *measure.Snapshot {
	w := &e.Combination.Plan.Workload
	s := &measure.Snapshot{LongestBy: -1, Steps: e.Steps, Head: measure.Head{
		Topology: e.Combination.Topology.Name, Lock: e.Combination.Lock.Name, Scenario: e.Combination.Scenario.Name,
		Workers: w.Workers, Keys: w.Keys, Rate: w.Rate, Service: e.Combination.Plan.Service != nil,
	}}
	switch {
	case e.Snapshot != nil:
		*s = *e.Snapshot
	case e.Stage != harness.Starting && f.last != nil:
		*s = *f.last
	}
	s.Stage, s.Head.Number, s.Head.Of = string(e.Stage), e.Number, e.Of
	f.last = s
	return s
}

// view shows a job in the dashboard.
type view struct {
	*dashboard.Dashboard
	frames
	saved []string
}

func (v *view) tell(e harness.Event) {
	if e.Controls != nil {
		v.Control(e.Controls)
		return
	}
	if e.Snapshot == nil && e.Stage != harness.Starting && v.last != nil {
		v.Control(nil)
	}
	if e.Stage == harness.Saved {
		v.saved = append(v.saved, e.Folder)
	}
	v.Publish(v.next(e))
}

// show carries a job out and shows its progress; metrics and the page may be nil.
func (e Env) show(ctx context.Context, s signals, o *options, job *harness.Job, metrics *metricsServer, page *livePage) (runs []results.Run, err error) {
	d, err := e.openDashboard(o, dashboard.Options{Quit: func(int) { s.press() }})
	if err != nil {
		return nil, err
	}
	tell := func(harness.Event) {}
	switch {
	case d != nil:
		v := &view{Dashboard: d}
		job.Watched, tell = true, v.tell
		defer func() {
			err = errors.Join(err, d.Close())
			for _, dir := range v.saved {
				_, _ = fmt.Fprintln(e.Stderr, "saved", dir)
			}
		}()
	case !o.quiet:
		tell = (&progress{w: e.Stderr, beside: job.Beside()}).tell
	}
	job.Watched = job.Watched || page != nil || metrics != nil
	job.Progress = func(event harness.Event) {
		metrics.tell(event)
		page.tell(event)
		tell(event)
	}
	return job.Run(ctx, s.stop)
}
