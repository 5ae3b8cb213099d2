package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// The function exit returns the exit code and its reason. Its inputs are the verdict on all runs, the results of
// gates (assertions about metrics), and the error that ended the command. The argument err is nil if the command
// ended normally.
func exit(stop context.Context, w results.Whole, gates []compare.GateResult, err error) Exit {
	var undecided, regressed []string
	if w.Status != checker.Pass {
		undecided = slices.Clone(w.Open)
	}
	for _, g := range gates {
		text := strings.TrimPrefix(strings.TrimSpace(g.Topology+" "+g.Lock)+": ", ": ") + g.Gate + ": "
		switch g.Status {
		case compare.GatePass, compare.GateNotReached:
		case compare.GateFail:
			regressed = append(regressed, text+g.Summary)
		default:
			undecided = append(undecided, text+string(g.Status)+": "+g.Summary)
		}
	}
	_, invalid := errors.AsType[*harness.UsageError](err)
	signal, interrupted := errors.AsType[interrupt](context.Cause(stop))
	switch {
	case len(w.Failed) > 0:
		return Exit{Violation, joined(w.Failed)}
	case invalid:
		return Exit{Usage, err.Error()}
	case interrupted:
		return Exit{bySignal + int(signal.signal), signal.Error()}
	case err != nil:
		return Exit{Broken, err.Error()}
	case len(undecided) > 0:
		return Exit{Inconclusive, joined(append(undecided, regressed...))}
	case len(regressed) > 0:
		return Exit{Regression, joined(regressed)}
	case len(w.Open) > 0:
		return Exit{Passed, w.Text}
	default:
		return Exit{}
	}
}

// refuse is the end of a command that has no result. It prints the reason, and returns the exit code.
func (e Env) refuse(stop context.Context, o *options, err error) int {
	err = o.placed(err)
	x := exit(stop, results.Whole{}, nil, err)
	if err == nil && x.Reason != "" {
		err = errors.New(x.Reason)
	}
	e.complain(err)
	if o.json {
		err = encode(Document{Schema: schema, Exit: x, Runs: []results.Run{}})(e.Stdout)
	} else {
		err = nil
	}
	return e.end(x, err)
}

// The method end returns the exit code. The argument writeErr is the error of writing the result: it is printed, and
// turns Passed into Broken.
func (e Env) end(x Exit, writeErr error) int {
	e.complain(writeErr)
	if writeErr != nil && x.Code == Passed {
		return Broken // the result did not reach its reader
	}
	return x.Code
}

// tapped adjusts the exit code of a watch that reads only a replication stream. The stream does not show waiting
// clients, which leaves checks undecided. Then only a violation counts.
func (o *options) tapped(x Exit) Exit {
	switch w := o.plan.Program; {
	case w == nil || !w.TapOnly:
	case o.overheard && x.Code != Violation:
		x = Exit{Violation, "the stream has shown violations"}
	case x.Code == Inconclusive:
		x = Exit{Passed, "the stream has shown no violation"}
	}
	return x
}

// endless tells whether the command runs until the user interrupts it. The interrupt is then a normal end.
func (o *options) endless() bool { return o.plan.Program != nil && o.plan.Program.Command == "" }
