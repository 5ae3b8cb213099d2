package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	Broken       = 4   // a run could not be carried out, or a file of a saved one is damaged
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

// ended is the exit code of a command, as an error. The command has already written its output.
type ended int

func (x ended) Error() string { return "exit code " + strconv.Itoa(int(x)) }

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

// writeFile writes a file, or appends to it. It removes a new file that it could not write as a whole, because a part
// could be taken for a result.
func writeFile(path string, mode int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err != nil && mode == os.O_TRUNC {
		err = errors.Join(err, os.Remove(path))
	}
	return err
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

// judgements converts runs into judgements, which reports for CI systems are made from. The argument out is the
// directory of runs.
func judgements(out string, runs []results.Run) (all []results.Judgement) {
	for i := range runs {
		j := runs[i].Judgement()
		j.Saved = filepath.Join(out, runs[i].Name)
		all = append(all, j)
	}
	return all
}
