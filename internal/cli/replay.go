package cli

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/internal/dashboard"
	"hammerlock/internal/harness"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// frameEvery is how often a replay moves on.
const frameEvery = 100 * time.Millisecond

// replayCommand shows a saved run in the dashboard.
func (e Env) replayCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "replay RUN", Short: "show a saved run in the dashboard", Args: takes(1, 1), ValidArgsFunction: completeRuns,
		Long: "replay shows a saved run of verify in the dashboard: its history has every operation. A run is a directory, or\n" +
			"the name of one where runs are saved, as in latest. Left and right seek by a second, with shift by a tenth;\n" +
			"home and end; space stops and goes on; q ends.",
		Example: "  bench replay latest",
	}
	o := newOptions(c, harness.Default())
	o.tui = tuiOn
	o.out("where runs are saved")
	return e.command(c, o, e.simple(o, func(ctx context.Context, args []string) error { return e.replay(ctx, o, savedRun(args[0], o.plan.Out)) }))
}

func (e Env) replay(base context.Context, o *options, path string) error {
	run, err := results.ReadRun(path)
	h, file, openErr := openHistory(path)
	_, missing := os.Stat(file)
	switch {
	case missing != nil && err == nil:
		return usage("%s has no history: bench keeps sums only; runs of verify can be replayed", path)
	case missing != nil:
		return usage("%v", err)
	case openErr != nil:
		return openErr
	}
	if run == nil {
		run, _ = results.ReadRun(filepath.Dir(file)) // a history may lie alone
	}
	p := &player{replay: measure.NewReplay(h, run), moved: make(chan struct{}, 1)}
	_, s, done := onSignals(base)
	defer done()
	d, err := e.openDashboard(o, dashboard.Options{Replay: true, Quit: func(int) { s.press() }})
	if err != nil {
		return err
	}
	d.Control(&measure.Controls{Seek: p.seek, PlayPause: p.hold})
	p.run(s.stop, d)
	return d.Close()
}

// player moves through a replay as time goes by, and as a person wants.
type player struct {
	replay *measure.Replay
	moved  chan struct{}

	mu   sync.Mutex
	at   time.Duration
	held bool
}

func (p *player) seek(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.replay.End()
	switch {
	case by >= end:
		p.at = end
	case by <= -end:
		p.at = 0
	default:
		p.at = min(max(p.at+by, 0), end)
	}
	p.wake()
}

func (p *player) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = !p.held
	p.wake()
}

func (p *player) wake() {
	select {
	case p.moved <- struct{}{}:
	default:
	}
}

// step goes on by what has passed and says where it is.
func (p *player) step(passed time.Duration) (at time.Duration, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.held {
		p.at = min(p.at+passed, p.replay.End())
	}
	return p.at, p.held
}

// run plays until ctx is done.
func (p *player) run(ctx context.Context, d *dashboard.Dashboard) {
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		now := time.Now()
		at, held := p.step(now.Sub(last))
		last = now
		s := p.replay.At(at)
		s.Paused = held
		d.Publish(s)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.moved:
		}
	}
}
