// Package cli is the command line that both commands share: flags to a plan, events to progress lines, results
// and errors to output and exit codes.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// The exit codes. If several apply, Violation beats Broken beats Inconclusive beats Regression.
const (
	Passed       = 0
	Violation    = 1 // a safety property failed
	Usage        = 2
	Inconclusive = 3
	Broken       = 4 // the run could not be carried out
	Regression   = 5 // a latency gate or a comparison failed
	interrupted  = 128
)

// Env is what a command is given by the process it runs in.
type Env struct {
	Args   []string
	Stdin  io.Reader
	Getenv func(string) string // nil = nothing is set
	Stdout io.Writer
	Stderr io.Writer
}

// interrupt is the cause of a stop by a signal, or by a key that stands for it.
type interrupt struct {
	signal syscall.Signal
	key    bool
}

func (i interrupt) Error() string {
	if i.key {
		return "ended by a key"
	}
	return "interrupted by " + signalName(i.signal)
}

func signalName(s syscall.Signal) string {
	if s == syscall.SIGTERM {
		return "SIGTERM"
	}
	return "SIGINT"
}

// signals is how a person ends a command: the first interrupt finishes what is in hand, the second calls it off.
type signals struct {
	stop  context.Context
	press func() // does what an interrupt does
}

// onSignals returns a context that is done at the second interrupt; the first ends signals.stop.
func onSignals(base context.Context) (ctx context.Context, s signals, done func()) {
	ctx, abort := context.WithCancelCause(base)
	stop, finish := context.WithCancelCause(ctx)
	caught, pressed := make(chan os.Signal, 4), make(chan struct{}, 4)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM)
	quit, quitted := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(quitted)
		for end := finish; ; end = abort {
			select {
			case s := <-caught:
				end(interrupt{signal: s.(syscall.Signal)})
			case <-pressed:
				end(interrupt{syscall.SIGINT, true})
			case <-quit:
				return
			}
		}
	}()
	press := func() {
		select {
		case pressed <- struct{}{}:
		default: // enough of them are on their way
		}
	}
	return ctx, signals{stop, press}, func() {
		signal.Stop(caught)
		close(quit)
		<-quitted
		finish(nil)
		abort(nil)
	}
}

// exit finds the code and reason of a command that carried out runs and may have ended with an error.
func exit(stop context.Context, runs []results.Run, gates []compare.GateResult, err error) Exit {
	var failed, undecided, regressed []string
	for i := range runs {
		status, text := runs[i].Safety()
		text = runs[i].Topology + " " + runs[i].Lock + ": " + text
		switch status {
		case checker.Fail:
			failed = append(failed, text)
		case checker.Inconclusive:
			undecided = append(undecided, text)
		}
	}
	for _, g := range gates {
		text := strings.TrimPrefix(strings.TrimSpace(g.Topology+" "+g.Lock)+": ", ": ") + g.Gate + ": "
		switch g.Status {
		case compare.GatePass:
		case compare.GateFail:
			regressed = append(regressed, text+g.Summary)
		default:
			undecided = append(undecided, text+string(g.Status)+": "+g.Summary)
		}
	}
	var usage *harness.UsageError
	var signal interrupt
	switch {
	case len(failed) > 0:
		return Exit{Code: Violation, Reason: strings.Join(failed, "; ")}
	case errors.As(err, &usage):
		return Exit{Code: Usage, Reason: err.Error()}
	case errors.As(context.Cause(stop), &signal):
		return Exit{Code: interrupted + int(signal.signal), Reason: signal.Error()}
	case err != nil:
		return Exit{Code: Broken, Reason: err.Error()}
	case len(undecided) > 0:
		return Exit{Code: Inconclusive, Reason: strings.Join(append(undecided, regressed...), "; ")}
	case len(regressed) > 0:
		return Exit{Code: Regression, Reason: strings.Join(regressed, "; ")}
	default:
		return Exit{Code: Passed}
	}
}

// report writes the outcome: the result to stdout, what went wrong to stderr.
func (e Env) report(o *options, x Exit, runs []results.Run, gates []compare.GateResult, err error) int {
	e.complain(err)
	if runs == nil {
		runs = []results.Run{}
	}
	judged := judgements(o.plan.Out, runs, gates)
	var writeErr error
	switch {
	case o.json:
		writeErr = e.document(Document{Schema: schema, Exit: x, Runs: runs, Gates: gates})
	case o.plan.Verify:
		writeErr = results.WriteVerdicts(e.Stdout, judged[:len(runs)])
	default:
		writeErr = results.WriteText(e.Stdout, runs)
	}
	if o.count > 1 && len(runs) > 0 && !o.json && !o.plan.Verify {
		writeErr = errors.Join(writeErr, compare.WriteSpread(e.Stdout, runs))
	}
	if !o.json {
		writeErr = errors.Join(writeErr, compare.WriteGates(e.Stdout, gates))
	}
	if len(runs) > 0 {
		writeErr = errors.Join(writeErr, o.writeBenchmarks(runs), e.notify(o.plan.Out, judged))
	}
	return e.end(x, writeErr)
}

// complain writes every line of an error.
func (e Env) complain(err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintln(e.Stderr, "error:", strings.TrimRight(line, "\n"))
	}
}

// end is the exit code of a command whose result was written, or was not.
func (e Env) end(x Exit, writeErr error) int {
	e.complain(writeErr)
	if writeErr != nil && x.Code == Passed {
		return Broken // the result did not reach its reader
	}
	return x.Code
}

func (e Env) document(d any) error {
	enc := json.NewEncoder(e.Stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

func (e Env) getenv(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}
