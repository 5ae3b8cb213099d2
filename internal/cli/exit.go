package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// Exit codes. If several apply, the order of precedence is: Violation, Usage, a signal, Broken, Inconclusive,
// Regression.
const (
	Passed       = 0
	Violation    = 1 // a safety property failed
	Usage        = 2
	Inconclusive = 3
	Broken       = 4   // a run could not be carried out
	Regression   = 5   // an assertion or a comparison failed
	bySignal     = 128 // plus the number of the signal
)

const schema = 1

// Document is the output of --json: how a command ended, and its results.
type Document struct {
	Schema     int                  `json:"schema"`
	Exit       Exit                 `json:"exit"`
	Saved      string               `json:"saved,omitzero"`
	Runs       []results.Run        `json:"runs,omitzero"`
	Verdict    *results.Whole       `json:"verdict,omitzero"` // for verify: one verdict on all runs together
	Repeat     string               `json:"repeat,omitzero"`  // command line that repeats everything
	Explored   []results.Judgement  `json:"explored,omitempty"`
	NotRun     []results.NotRun     `json:"not_run,omitempty"`
	Gates      []compare.GateResult `json:"gates,omitempty"`
	Comparison *compare.Comparison  `json:"comparison,omitzero"`
	Trial      *compare.Trial       `json:"trial,omitzero"`
	Search     *compare.Found       `json:"search,omitzero"`
	Failovers  []results.Failover   `json:"failovers,omitempty"`
	Soak       *results.Soak        `json:"soak,omitzero"`
	Expected   []results.Expected   `json:"expected,omitempty"`
}

// Exit is the exit code of a command. Reason tells why; it is empty if all went well.
type Exit struct {
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

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

// undecided returns Inconclusive with the reason why, instead of Passed. If the argument why is empty or the code is
// another, it changes nothing.
func (x Exit) undecided(why string) Exit {
	if x.Code == Passed && why != "" {
		return Exit{Inconclusive, why}
	}
	return x
}

// joined joins at most ten reasons into one text, and adds the number of the others.
func joined(reasons []string) string {
	const most = 10
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(reasons, "; ")
}

// result is what a command hands to the outputs at its end.
type result struct {
	exit     Exit
	document any // output of --json
	text     func(io.Writer) error
	dir      string              // directory of the saved runs; empty = there are none
	file     string              // name of a file in dir for the document; empty = none
	judged   []results.Judgement // verdicts for CI systems
	err      error               // errors that other outputs had earlier
}

// answer writes the result to stdout, and errors of outputs to stderr. It returns the exit code.
func (e Env) answer(o *options, r result) int {
	write := r.text
	if o.json {
		write = encode(r.document)
	}
	err := errors.Join(r.err, o.writeFiles(r.document))
	for _, x := range always {
		err = errors.Join(err, x.end(e, &r))
	}
	return e.end(r.exit, errors.Join(err, write(e.Stdout)))
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

// say prints a line about the progress to stderr. With --quiet it prints nothing.
func (e Env) say(o *options, format string, args ...any) {
	if !o.quiet {
		_, _ = fmt.Fprintf(e.Stderr, format+"\n", args...)
	}
}

func (e Env) complain(err error) { e.lines("error:", err) }

// lines prints every line of an error, with the label in front.
func (e Env) lines(label string, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintln(e.Stderr, label, strings.TrimRight(line, "\n"))
	}
}

func encode(document any) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := encoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(document)
	}
}

// encoder returns an encoder that writes each document in one line.
func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
