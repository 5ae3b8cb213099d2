package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/history"
	"hammerlock/internal/dashboard"
	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

const frameEvery = 100 * time.Millisecond

// Limits of the speed of a replay; 1 is the speed of the run itself.
const (
	slowestReplay = 1.0 / 64
	fastestReplay = 64
)

func (e Env) replayCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "replay RUN", Short: "show a saved run in the dashboard", Args: e.takes(1, 1),
		ValidArgsFunction: completeRuns,
		Long: "replay shows a saved run of verify in the dashboard: its history has every operation. A run is a\n" +
			"directory, or its name, or the beginning of its name, where runs are saved, as in latest. z shows\n" +
			"less of the history around the moment, Z more; left and right seek by a second, or by a quarter of\n" +
			"what is shown if that is less, with shift by a tenth of it; home and end; n goes to the next\n" +
			"violation, N to the one before; + and - double and halve the speed; space stops and goes on; q ends.",
		Example: "  bench replay latest",
	}
	o := newOptions(c, harness.Default())
	o.tui = tuiOn
	o.out("where runs are saved")
	return e.command(c, o, e.simple(o, func(ctx context.Context, args []string) error {
		path, err := locateOne(args[0], o.plan.Out)
		if err != nil {
			return err
		}
		return e.replay(ctx, o, path)
	}))
}

func (e Env) replay(base context.Context, o *options, path string) error {
	h, file, err := openHistory(path)
	if err != nil {
		return err
	}
	run, err := record(filepath.Dir(file)) // a history file need not have a run's record beside it
	if err != nil {
		return err
	}
	_, s, done := onSignals(base)
	defer done()
	d, err := e.openDashboard(o, dashboard.Options{Replay: true, Quit: func(int) { s.press() }})
	if err != nil {
		return err
	}
	play(s.stop, d, replayed(h, run))
	return d.Close()
}

// The function replayed returns the replay of a run. If the run failed, the replay shows its verdict in the header,
// because a replay cannot find every violation itself. The argument run is nil if the history has no record.
func replayed(h *history.History, run *results.Run) *measure.Replay {
	if run != nil && run.Failed() {
		run.Label = headline(run)
	}
	return measure.NewReplay(h, run)
}

// play shows a replay until stop ends. The replay advances with time, and keys change its speed and position.
func play(stop context.Context, d *dashboard.Dashboard, r *measure.Replay) {
	var at time.Duration
	held, speed := false, 1.0
	keys := make(chan func())
	pressed := func(do func()) {
		select {
		case keys <- do:
		case <-stop.Done():
		}
	}
	d.Control(&measure.Controls{
		Seek: func(by time.Duration) {
			pressed(func() { at = min(max(at+min(max(by, -r.End()), r.End()), 0), r.End()) })
		},
		PlayPause: func() { pressed(func() { held = !held }) },
		Speed: func(factor float64) {
			pressed(func() { speed = min(max(speed*factor, slowestReplay), fastestReplay) })
		},
		Violation: func(step int) bool {
			found := make(chan bool, 1)
			pressed(func() {
				to, ok := r.Violation(at, step)
				if ok {
					at, held = to, true
				}
				found <- ok
			})
			select {
			case ok := <-found:
				return ok
			case <-stop.Done():
				return true
			}
		},
	})
	frames := time.Tick(frameEvery)
	for last := time.Now(); ; {
		s := r.At(at)
		s.Paused, s.Speed = held, speed
		d.Publish(s)
		do := func() {}
		select {
		case <-stop.Done():
			return
		case <-frames:
		case do = <-keys:
		}
		now := time.Now()
		if !held {
			at = min(at+time.Duration(speed*float64(now.Sub(last))), r.End())
		}
		last = now
		do()
	}
}
