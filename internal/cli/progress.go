package cli

import (
	"fmt"
	"io"
	"time"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
)

// progressEvery is how often a run shows that it is alive when no terminal is watched.
const progressEvery = 2 * time.Second

// progress writes plain lines about a job.
type progress struct {
	w    io.Writer
	last time.Duration
	done int64
}

func (p *progress) tell(e harness.Event) {
	head := fmt.Sprintf("[%d/%d] %s:", e.Number, e.Of, e.Combination.Name())
	switch {
	case e.Phase == harness.Starting:
		p.last, p.done = 0, 0
		p.line("%s starting", head)
	case e.Phase == harness.Saved:
		p.line("%s saved %s", head, e.Folder)
	case e.Phase == harness.Judging:
		p.line("%s judging", head)
	case e.Live.At == 0:
		p.line("%s up in %s", head, human.Duration(e.Took))
	case e.Live.At-p.last >= progressEvery:
		l := e.Live
		rate := float64(l.Done-p.done) / (l.At - p.last).Seconds()
		p.line("%s %s  %s visits (%.0f/s)  acquire p50 %s p99 %s  %d waiting  %d errors", head,
			l.At.Truncate(100*time.Millisecond), human.Count(l.Done), rate, l.Acquire.Text(false),
			l.Acquire.Text(true), l.Waiting, l.Errors)
		p.last, p.done = l.At, l.Done
	}
}

func (p *progress) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }
