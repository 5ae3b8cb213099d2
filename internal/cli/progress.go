package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/results"
)

// Without a dashboard, a run prints its first line after firstProgress, and further lines every progressEvery.
const (
	progressEvery = 2 * time.Second
	firstProgress = 500 * time.Millisecond
)

// progress prints the events of a job as lines. If runs are parallel, each run prints one line, at its end.
type progress struct {
	w        io.Writer
	parallel bool
	last     time.Duration
	done     int64
}

func (p *progress) tell(e harness.Event) {
	head := fmt.Sprintf("[%d/%d] %s:", e.Number, e.Of, e.Combination.Name())
	if phase := e.Combination.PhaseAt(e.Live.At); phase != "" && e.Live.At > 0 {
		head += " " + phase
	}
	if p.parallel {
		if e.Stage == harness.Saved && e.Run != nil {
			verdict, proof := found(e.Run)
			p.line("[%d/%d] %s: %s  %s%s", e.Ended, e.Of, e.Combination.Name(), verdict, proof, left(e.Left))
		}
		return
	}
	switch {
	case e.Said != "":
		p.line("%s", e.Said)
	case e.Combination.Plan.Program != nil && e.Stage == harness.Running: // the watched program prints its own lines
	case len(e.Steps) > 0, e.Controls != nil: // only a dashboard or a web page shows these
	case e.Stage == harness.Starting:
		p.last, p.done = 0, 0
		if before := e.Combination.Before; len(before) > 0 {
			p.line("%s inconclusive: %s; attempt %d", head, before[len(before)-1], len(before)+1)
		}
		p.line("%s starting", head)
	case e.Stage == harness.Saved:
		if e.Run != nil {
			p.line("%s %s%s", head, headline(e.Run), left(e.Left))
		}
		p.line("%s saved %s", head, e.Folder)
	case e.Stage == harness.Judging:
		p.line("%s judging", head)
	case e.Live.At == 0:
		p.line("%s up in %s", head, human.Duration(e.Took))
	case e.Live.At-p.last >= progressEvery, p.last == 0 && e.Live.At >= firstProgress:
		l := e.Live
		visits := fmt.Sprintf("warm-up: %s (%s/s)", human.Quantity(l.Warm, "visit"),
			perSecond(l.Warm, l.At))
		if from := max(p.last, e.Combination.Plan.Warmup); l.At > from {
			visits = fmt.Sprintf("%s visits (%s/s)", human.Count(l.Done), perSecond(l.Done-p.done, l.At-from))
		}
		unserved := ""
		if l.Unserved > 0 {
			unserved = "  UNAVAILABLE for " + human.Duration(l.Unserved)
		}
		p.line("%s %s  %s  acquire p50 %s p99 %s  %s waiting  %s errors%s", head,
			l.At.Truncate(100*time.Millisecond), visits, l.Acquire.Text(false),
			l.Acquire.Text(true), human.Count(int64(l.Waiting)), human.Count(int64(l.Errors)), unserved)
		p.last, p.done = l.At, l.Done
	}
}

// perSecond formats a rate in whole numbers.
func perSecond(n int64, in time.Duration) string {
	return human.Count(int64(float64(n)/in.Seconds() + 0.5))
}

// The function found returns the verdict on a run in capitals, and its evidence in a few words.
func found(r *results.Run) (verdict, proof string) {
	j := r.Judgement()
	status, _ := j.Status()
	return strings.ToUpper(status.String()), j.Proof()
}

// The function left returns a text about the remaining time, in whole seconds. It is empty for less than a second.
func left(rest time.Duration) string {
	if rest < time.Second {
		return ""
	}
	return fmt.Sprintf("  about %v left", rest.Round(time.Second))
}

// headline returns the result of a run in one line.
func headline(r *results.Run) string {
	j := r.Judgement()
	status, text := j.Status()
	if status != checker.Pass {
		return fmt.Sprintf("%s  %s", strings.ToUpper(status.String()), text)
	}
	parts := []string{strings.ToUpper(status.String()), human.Number(r.Throughput) + " visits/s"}
	if p := r.Latency.Response; p.P50 != nil {
		parts = append(parts, "response p50 "+human.Duration(time.Duration(*p.P50)))
	}
	return strings.Join(append(parts, r.Fairness.JainText()), "  ")
}

// exploring returns two functions. The first shows the progress of an exploration, and the second ends the display.
// On a terminal the progress is one line, which the second function removes. Otherwise the first function prints
// lines: one after 4 s, and another each time that the elapsed time has doubled.
func (e Env) exploring(o *options, lock string) (tell func(explore.Progress), over func()) {
	at := e.terminals[1]
	if o.quiet {
		return nil, func() {}
	}
	if at != nil && term.IsTerminal(int(at.Fd())) && e.Getenv("TERM") != "dumb" {
		return func(p explore.Progress) { _, _ = fmt.Fprintf(at, "\r\x1b[K%s: %v", lock, p) },
			func() { _, _ = fmt.Fprint(at, "\r\x1b[K") }
	}
	begun, next := time.Now(), 2*progressEvery
	return func(p explore.Progress) {
		if at := time.Since(begun); at >= next {
			next = 2 * at
			e.say(o, "%s: %v", lock, p)
		}
	}, func() {}
}

func (p *progress) close(context.Context, string) error { return nil }

func (p *progress) line(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format+"\n", args...) }
