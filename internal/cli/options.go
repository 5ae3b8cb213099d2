package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/fleet"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// options has the flags of a command, and the mistakes found in its command line so far.
type options struct {
	settings.Set
	plan   harness.Plan
	json   bool
	quiet  bool
	list   bool
	tui    string
	quick  bool
	strict bool // every scenario must have a verdict

	expect   bool
	markdown string

	count int
	gates []compare.Gate
	live  []func(context.Context, Env) shows // functions that open the outputs with an address
	files []func(*Document) error            // functions that write the output files

	places map[string]string // address that an output has opened -> its flag

	runFiles []output // outputs that are written beside each run

	explores bool                // explore is one of the scenarios
	explored []results.Judgement // judgements of explorations

	listing  bool       // the plan's file may list services
	services []*options // services in the order of the file

	fleet fleetFlags

	overheard bool          // the replication stream alone has proved a violation
	linger    time.Duration // longest time for which metrics are served at the end, until they are read
}

// newOptions returns the options of a command. The help shows flags in the order in which they are declared.
func newOptions(c *cobra.Command, p harness.Plan) *options {
	return &options{Set: settings.Of(c), plan: p}
}

// invalid returns an error that lists all mistakes; nil if there are none.
func (o *options) invalid() error {
	if len(o.Mistakes) == 0 {
		return nil
	}
	return &harness.UsageError{Mistakes: o.Mistakes}
}

func usage(format string, args ...any) error {
	return &harness.UsageError{Mistakes: human.Mistakes{human.Wrong("", format, args...)}}
}

// Parts of a command line: each flag belongs to one. Flags of the part session are left out of the command line that
// repeats a run.
const (
	session settings.Part = iota // about this command, or the output of its runs
	axis                         // about the plan: a list, of which each run has one element
	setting                      // about the plan, for all runs
	load                         // about the plan, for all runs, unless scenarios set it
	instead                      // like load; if scenarios are the default, the flag asks for a run without scenarios
)

func flag(p settings.Part, name, usage string) settings.Flag {
	return settings.Flag{Part: p, Name: name, Usage: usage}
}

// ofPlan tells whether a flag is about the plan.
func ofPlan(_ *pflag.Flag, v *settings.Value) bool { return v.Part != session }

// placed adds to each mistake the place, such as a line of the plan's file, where its value was set.
func (o *options) placed(err error) error {
	usage, ok := errors.AsType[*harness.UsageError](err)
	if !ok || err.Error() != usage.Error() { // err has other errors besides the mistakes
		return err
	}
	return &harness.UsageError{Mistakes: o.Placed(usage.Mistakes)}
}

// show is an output that is open during the runs.
type show interface {
	tell(harness.Event)
	// The method close ends the output after all runs. The argument page is the path of the report on all runs; empty
	// = no report.
	close(ctx context.Context, page string) error
}

type shows []show

func (all shows) tell(event harness.Event) {
	for _, x := range all {
		x.tell(event)
	}
}

func (all shows) close(ctx context.Context, page string) (err error) {
	for _, x := range all {
		err = errors.Join(err, x.close(ctx, page))
	}
	return err
}

// fleetFlags has the flags of a coordinator, the command that distributes workers to agents on other machines.
type fleetFlags struct {
	fleet.Options
	listen    string
	tokenFile string
}

// say prints a line about the progress to stderr. With --quiet it prints nothing.
func (e Env) say(o *options, format string, args ...any) {
	if !o.quiet {
		_, _ = fmt.Fprintf(e.Stderr, format+"\n", args...)
	}
}

// output is something that a command can write about its runs. An output sets only the functions below that its kind
// needs. They determine the kind of its flag.
type output struct {
	name, what string // name of the flag, and its help

	// The function set declares the flag of an output that changes how runs are shown: as text, JSON, no lines, or a
	// dashboard.
	set func(*options, settings.Flag)
	// The function open opens an output at a network address. The output stays open during all runs.
	open func(ctx context.Context, e Env, o *options, address string) (show, error)
	// The function write writes a file at the end. If it writes no bytes, the file is not created.
	write func(io.Writer, *Document) error
	// The function saved writes a file beside a run that was just saved in the directory dir.
	saved func(o *options, r *reports, dir string) error
	// The function end writes a file at the end, without a flag. The function at returns the path of that file, so
	// that it can be checked before the runs; "" = no check. The argument dir is the directory of the runs.
	end func(Env, *result) error
	at  func(e Env, dir string) string
}
