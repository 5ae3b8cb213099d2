package explore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/locks"
)

// Command is a hidden argument of the suite's commands. With it, a command runs as an exploring process: it runs the
// exploration as the only test of a test program, because virtual time (testing/synctest) needs a test.
const Command = "explore-process"

// Orders are the task of an exploring process: an exploration, the replay of one schedule, or a sweep.
type Orders struct {
	Lock     string   `json:"lock"`
	Options  Options  `json:"options"`
	Replay   bool     `json:"replay,omitempty"`
	Schedule []Choice `json:"schedule,omitempty"`
	Sweep    *Sweep   `json:"sweep,omitempty"` // if set, the process does this sweep
	Command  string   `json:"command"`         // the command that repeats the exploration
	File     string   `json:"file,omitempty"`  // file for the history of a counterexample; empty = none
	// Tell is called with the progress of the exploration; may be nil.
	Tell func(Progress) `json:"-"`
}

// answer is a message of an exploring process: its progress, or the final report.
type answer struct {
	Progress *Progress `json:"progress,omitempty"`
	Report   *Report   `json:"report,omitempty"`
	Error    string    `json:"error,omitempty"`
}

const gcPercent = 400

// endless is how long an exploration may exceed its time budget. Then one of its schedules is taken to be endless,
// and its process is ended.
const endless = 15 * time.Second

// errEndless is why an exploration was stopped that was still running long after its budget. Its
// result is inconclusive.
var errEndless = errors.New("a schedule does not end: virtual time stops while a worker computes, " +
	"or waits for a mutex whose holder waits for a server")

// InProcess runs an exploration in a separate process, which runs the same program as this one. Its arguments are
// those of the parameter before, followed by Command.
func InProcess(ctx context.Context, orders Orders, before ...string) (Report, error) {
	r, died, err := inProcess(ctx, orders, before)
	if died && orders.Options.jobs() > 1 {
		orders.Options.Jobs = 1 // with one job, the schedule that ended the process is known
		r, _, err = inProcess(ctx, orders, before)
	}
	return r, err
}

func inProcess(ctx context.Context, orders Orders, before []string) (r Report, died bool, err error) {
	orders.Options.Jobs = orders.Options.jobs()
	self, err := os.Executable()
	if err != nil {
		return r, false, err
	}
	in, err := json.Marshal(orders)
	if err != nil {
		return r, false, err
	}
	limit := orders.Options.Budget + endless
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errEndless)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append(slices.Clone(before), Command)...)
	var stderr tail
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	// Rare garbage collections are enough, because memory is freed after each schedule. A processor for each job is
	// enough, because only one goroutine of a schedule runs at a time.
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOGC=%d", gcPercent), fmt.Sprintf("GOMAXPROCS=%d", orders.Options.Jobs))
	begun := time.Now()
	a, unheard, failed := orders.hear(cmd)
	r = Report{Lock: orders.Lock, Options: orders.Options, Took: time.Since(begun), Status: checker.Inconclusive}
	if r.Reason = errEndless.Error(); errors.Is(context.Cause(ctx), errEndless) {
		return r, false, nil
	} else if ctx.Err() != nil {
		return r, false, context.Cause(ctx)
	}
	if unheard != nil {
		r.Reason = fmt.Sprintf("the process that explored ended without an answer (%v): %s", failed, stderr.last())
		if r.Found = stderr.died(failed); r.Found != nil {
			r.Status, r.Reason, r.Found.After = checker.Fail, "", r.Took
		}
		return r, true, nil
	}
	if a.Error != "" {
		return *a.Report, false, errors.New(a.Error)
	}
	return *a.Report, false, nil
}

// hear starts the process, passes its progress to Tell, and returns its final report. If there is no report, unheard
// is the error of reading it. failed is the error with which the process ended.
func (o *Orders) hear(cmd *exec.Cmd) (a answer, unheard, failed error) {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return a, err, err
	}
	for answers := json.NewDecoder(out); unheard == nil && a.Report == nil; {
		a = answer{}
		if unheard = answers.Decode(&a); a.Progress != nil && o.Tell != nil {
			o.Tell(*a.Progress)
		}
	}
	return a, unheard, cmd.Wait()
}

// Child is the main function of an exploring process, which can explore the locks in known. It does not return.
func Child(in io.Reader, out io.Writer, known []locks.Spec) {
	os.Args = os.Args[:1] // the testing package must not parse the other arguments
	test := func(t *testing.T) { Serve(t, in, out, known) }
	os.Stdout = os.Stderr // the testing package's output must not mix with the answers
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "explore", F: test}}, nil, nil)
}

// Serve is Child for a process that is a test already: it reads its orders from in and writes its answers to out.
func Serve(t *testing.T, in io.Reader, out io.Writer, known []locks.Spec) {
	t.Helper()
	answers := json.NewEncoder(out)
	r, err := execute(t, in, known, func(p Progress) {
		_ = answers.Encode(answer{Progress: &p}) // an error does not matter: there may be no reader
	})
	a := answer{Report: &r}
	if err != nil {
		a.Error = err.Error()
	}
	if err := answers.Encode(a); err != nil {
		t.Error(err)
	}
}

func execute(t *testing.T, in io.Reader, known []locks.Spec, tell func(Progress)) (Report, error) {
	var o Orders
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return Report{}, fmt.Errorf("no orders: %w", err)
	}
	at := slices.IndexFunc(known, func(s locks.Spec) bool { return s.Name == o.Lock })
	if at < 0 {
		return Report{}, fmt.Errorf("this program has no lock %q", o.Lock)
	}
	spec := known[at]
	if o.Options.jobs() == 1 {
		o.Options.log = os.Stderr
	}
	r := Report{Lock: o.Lock, Options: o.Options}
	var err error
	switch {
	case o.Sweep != nil:
		return o.Sweep.Run(t, spec, o.Options)
	case o.Replay:
		r.Found, err = Replay(t, spec, o.Options, o.Schedule)
		r.replayed(len(o.Schedule))
	default:
		o.Options.tell = tell
		r, err = Run(t, spec, o.Options)
	}
	if err == nil && r.Found != nil && o.File != "" {
		r.Found.History.Command, r.Found.History.Started = o.Command, time.Now()
		err = r.Found.History.Save(o.File)
	}
	return r, err
}
