package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

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

// tuiMode reads the flag.
func (o *options) tuiMode(text string) error {
	switch text {
	case tuiAuto, tuiOn, tuiOff:
		o.tui = text
		return nil
	}
	return errors.New("auto, on or off")
}

// theatre shows a job on the terminal.
type theatre struct {
	dashboard *dashboard.Dashboard
	guard     *dashboard.Guard
	last      *measure.Snapshot
	saved     []string
}

// theatre opens the dashboard if it is wanted and can be had; nil if plain lines are to do.
func (e Env) theatre(o *options, options dashboard.Options) (*theatre, error) {
	if o.tui == tuiOff || o.tui == tuiAuto && (o.json || o.quiet) {
		return nil, nil
	}
	out, _ := e.Stdout.(*os.File)
	errs, _ := e.Stderr.(*os.File)
	err := dashboard.Fits(out, errs, e.getenv)
	switch {
	case err == nil, o.tui == tuiOn && errors.Is(err, dashboard.ErrSmall):
	case o.tui == tuiOn:
		return nil, &harness.UsageError{Mistakes: []string{fmt.Sprintf("--tui on: %v", err)}}
	default:
		return nil, nil
	}
	t, err := raise(options, dashboard.Shows(e.getenv))
	if err != nil && o.tui == tuiOn {
		return nil, &harness.SetupError{Problems: []string{fmt.Sprintf("--tui on: %v", err)}}
	}
	if err != nil {
		_, _ = fmt.Fprintf(e.Stderr, "no dashboard: %v\n", err)
	}
	return t, nil
}

func raise(o, shows dashboard.Options) (*theatre, error) {
	o.ASCII, o.Color = shows.ASCII, shows.Color
	guard, err := dashboard.NewGuard()
	if err != nil {
		return nil, err
	}
	screen, err := dashboard.Terminal()
	if err != nil {
		return nil, errors.Join(err, guard.Dismiss())
	}
	return &theatre{dashboard: dashboard.Open(screen, o), guard: guard}, nil
}

// close gives the terminal back. It is safe on nil.
func (t *theatre) close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.dashboard.Close(), t.guard.Dismiss())
}

// tell publishes what a job says of itself.
func (t *theatre) tell(e harness.Event) {
	if e.Controls != nil {
		t.dashboard.Control(e.Controls)
		return
	}
	s := &measure.Snapshot{LongestBy: -1, Head: measure.Head{
		Topology: e.Combination.Topology.Name, Lock: e.Combination.Lock.Name,
	}}
	switch {
	case e.Snapshot != nil:
		*s = *e.Snapshot
	case e.Phase != harness.Starting && t.last != nil:
		*s = *t.last
		t.dashboard.Control(nil)
	}
	s.Phase, s.Head.Number, s.Head.Of = string(e.Phase), e.Number, e.Of
	if e.Phase == harness.Saved {
		t.saved = append(t.saved, e.Folder)
	}
	t.last = s
	t.dashboard.Publish(s)
}

// watched carries a job out before the eyes of whoever watches; metrics may be nil.
func (e Env) watched(ctx context.Context, s signals, o *options, job *harness.Job, metrics *metricsServer) (runs []results.Run, err error) {
	t, err := e.theatre(o, dashboard.Options{Quit: func(int) { s.press() }})
	if err != nil {
		return nil, err
	}
	switch {
	case t != nil:
		job.Watched, job.Progress = true, t.tell
	case o.quiet:
		job.Progress = func(harness.Event) {}
	default:
		job.Progress = (&progress{w: e.Stderr}).tell
	}
	if show := job.Progress; metrics != nil {
		job.Progress = func(event harness.Event) {
			metrics.tell(event)
			show(event)
		}
	}
	defer func() {
		err = errors.Join(err, t.close())
		if t != nil {
			for _, dir := range t.saved {
				_, _ = fmt.Fprintln(e.Stderr, "saved", dir)
			}
		}
	}()
	return job.Run(ctx, s.stop)
}
