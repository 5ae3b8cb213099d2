package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/results/report"
)

func (e Env) exploreCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "explore", Short: "every interleaving of a lock up to a bound, in virtual time", Args: e.takes(0, 0),
		Long: "explore runs clients of a lock on a server in memory, in virtual time, and tries every order of\n" +
			"their messages that has at most that many deviations from the plain one. A deviation is: another\n" +
			"client comes first; a client is paused for longer than its lease; messages wait until a key expires;\n" +
			"a message is lost; a connection breaks; a client crashes; a call is called off; a server refuses a\n" +
			"command, hangs, forgets its keys, has its clock jump or, one of several, never answers again. Fewer\n" +
			"deviations come first, then fewer steps; random schedules with more deviations follow until the budget\n" +
			"ends. Schedules run on all cores, and what is found is the same on\n" +
			"one. The checkers of verify judge, and hold nothing against a lock that it relies on. A violation is\n" +
			"printed step by step (* marks a deviation) and saved; --replay shows it again. Exploring needs no\n" +
			"Redis, and proves something about the client's algorithm only.",
		Example: "  verify explore --lock plain-del\n  verify explore --lock lease --deviations 1\n" +
			"  verify explore --lock plain-del,get-del,lease --sweep pause=0..2ttl\n" +
			"  verify explore --replay results/runs/latest/explore.json",
	}
	x := &exploreOptions{e: e, options: newOptions(c, e.benchPlan()), locks: []locks.Spec{known.Locks[0]},
		o: explore.Defaults}
	x.o.Random = true
	settings.Some(&x.Set, flag(session, "lock", "these locks"), &x.locks,
		settings.Catalogue[locks.Spec]{All: known.Locks, Name: func(s locks.Spec) string { return s.Name }, Own: inGo})
	x.Integer(flag(session, "clients", "how many clients, each a process of its own unless --together"), &x.o.Clients,
		5)
	x.Toggle(flag(session, "together", "the clients live in one process, which does not crash"), "", &x.o.Together)
	x.Integer(flag(session, "visits", "how many visits each client makes"), &x.o.Visits, 10)
	x.Integer(flag(session, "sites", "how many independent servers; unless it is given, 3 for a lock\n"+
		"on several, and one visit"), &x.o.Sites, 9)
	x.Integer(flag(session, "deviations", "how many deviations a schedule has at most"), &x.o.Deviations, 0)
	x.Integer(flag(session, "jobs",
		"how many schedules run at a time; the findings do not depend on it (0: one a core)"),
		&x.o.Jobs, 0)
	x.Duration(flag(session, "budget", "how long to explore each lock at most, in real time"), &x.o.Budget)
	x.Duration(flag(session, "lease", "the lease, in virtual time"), &x.o.TTL)
	x.Duration(flag(session, "hold", "how long a holder stays, in virtual time"), &x.o.Hold)
	x.Duration(flag(session, "pause", "how long a paused client is paused, in virtual time"), &x.o.Pause)
	x.Toggle(flag(session, "random", "go on with random schedules of more deviations until the budget ends"), "",
		&x.o.Random)
	x.Integer(flag(session, "schedules",
		"this many random schedules in all, with up to as many deviations, in place of all up to the bound;\n"+
			"without --lock of every right lock that can be explored"), &x.o.Schedules, 0)
	x.seed("of the random schedules (default: drawn and printed)")
	x.Text(flag(session, "sweep",
		"in place of one exploration: where one deviation breaks a lock while a number of it grows, as in\n"+
			"pause=0..2ttl, delay=0..2ttl (messages), hang=0..5ttl or clock=0..2ttl (servers)"), "range", &x.sweep)
	x.Text(flag(session, "replay", "show a saved counterexample again: its explore.json"), "file", &x.replay)
	x.out("where a counterexample is saved")
	x.has(reportOutput, webOutput, metricsOutput, lingerOutput, otlpOutput, jsonOutput, quietOutput)
	x.has(output{name: "svg",
		what: "draw the first counterexample as a sequence diagram, or the sweep; without one nothing is written",
		write: func(w io.Writer, _ *Document) error {
			_, err := io.WriteString(w, x.picture)
			return err
		}})
	return e.command(c, x.options, interruptible(func(ctx context.Context, s signals, _ []string) int {
		return e.explore(ctx, s, x)
	}))
}

// explore explores each lock in turn, and returns the exit code for all of them. An exploration runs a lock in
// virtual time, with many orders of messages.
func (e Env) explore(ctx context.Context, s signals, x *exploreOptions) int {
	r := &explorations{series: &series{e: e, o: x.options, tells: true}, x: x}
	r.page = func() string {
		r.reports.close(e, x.plan.Out, report.Unsaved{})
		return r.reports.last(x.plan.Out)
	}
	err := r.carryOut(ctx, s, func(context.Context) (err error) {
		r.orders, err = x.orders()
		return err
	}, r.steps)
	if len(r.all) == 0 {
		return e.refuse(s.stop, x.options, err)
	}
	e.complain(err)
	exit := exit(s.stop, weighExplored(r.all), nil, err)
	defer func() { e.complain(r.unsaved) }()
	document := struct {
		Schema   int              `json:"schema"`
		Exit     Exit             `json:"exit"`
		Saved    []string         `json:"saved"`
		Explored []explore.Report `json:"explored"`
	}{schema, exit, r.dirs, r.all}
	text := func(w io.Writer) error { return writeExplored(w, r.all, r.dirs) }
	dir := ""
	if x.replay == "" {
		dir = x.plan.Out
	}
	return e.answer(x.options, result{exit: exit, document: document, text: text, dir: dir, judged: r.judged})
}

// The method orders collects all mistakes, and returns the explorations to run.
func (x *exploreOptions) orders() (list []explore.Orders, err error) {
	if x.replay != "" {
		r, err := savedExploration(x.replay)
		if err != nil || r.Found == nil {
			x.Mistake("replay", "%s: no saved counterexample: %v", x.replay, err)
			return nil, x.invalid()
		}
		again := explore.Orders{Lock: r.Lock, Options: r.Options, Replay: true, Schedule: r.Found.Schedule}
		return []explore.Orders{again}, x.invalid()
	}
	var sweep *explore.Sweep
	if x.sweep != "" {
		if sweep, err = explore.ParseSweep(x.sweep, x.o.TTL); err != nil {
			x.Mistake("sweep", "%s: %v", x.sweep, err)
		}
	}
	x.o.Seed = x.plan.Workload.Seed
	if x.o.Schedules > 0 && !x.Flags.Changed("budget") {
		x.o.Budget = aNight
	}
	for _, spec := range x.locks {
		o := x.sized(spec)
		if err := explore.Excluded(spec, o); err != nil {
			x.Mistake("lock", "%s cannot be explored: %v", spec.Name, err)
		}
		list = append(list, explore.Orders{Lock: spec.Name, Options: o, Sweep: sweep})
	}
	if x.o.Schedules > 0 && !x.Flags.Changed("lock") {
		list = x.ofRight()
	}
	for _, m := range x.o.Check() {
		x.Mistake("", "%s", m)
	}
	return list, cmp.Or(x.invalid(), harness.Saves(x.plan.Out))
}

// savedExploration reads the report of an exploration that found a counterexample.
func savedExploration(file string) (r explore.Report, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// aNight is the time limit for random schedules if --budget is not given.
const aNight = 12 * time.Hour

// sized returns the options for a lock. A lock that needs several sites (independent Redis servers) gets as many as
// in verify, unless --sites is given.
func (x *exploreOptions) sized(spec locks.Spec) explore.Options {
	o, brief := x.o, explore.Briefly(spec)
	if !x.Flags.Changed("sites") && brief.Sites > 1 {
		if o.Sites = brief.Sites; !x.Flags.Changed("visits") {
			o.Visits = brief.Visits
		}
	}
	return o
}

// ofRight returns one exploration for each correct lock that can be explored. The requested number of random
// schedules is divided evenly among them.
func (x *exploreOptions) ofRight() (list []explore.Orders) {
	for _, spec := range known.Locks {
		o := x.sized(spec)
		if spec.Broken == "" && explore.Excluded(spec, o) == nil {
			list = append(list, explore.Orders{Lock: spec.Name, Options: o})
		}
	}
	for i := range list {
		list[i].Options.Schedules = (x.o.Schedules + len(list) - 1) / len(list)
	}
	return list
}

// weighExplored makes one verdict from all explorations.
func weighExplored(all []explore.Report) results.Whole {
	w := results.Whole{Status: checker.Pass}
	for _, r := range all {
		switch reason := r.Lock + ": " + r.Verdict(); r.Status {
		case checker.Pass:
			continue
		case checker.Fail:
			w.Failed = append(w.Failed, reason)
		default:
			w.Open = append(w.Open, reason)
		}
		w.Status = checker.Inconclusive
	}
	return w
}

func writeExplored(w io.Writer, all []explore.Report, saved []string) error {
	p := &human.Printer{W: w}
	for i, r := range all {
		p.Line("%s %s: %s", strings.ToUpper(r.Status.String()), r.Lock, r.Verdict())
		if r.Found != nil {
			p.Line("\n%s", r.Found.Text())
		}
		if saved[i] != "" && r.Envelope == nil {
			p.Line("\nsaved in %s; to see it again: verify explore --replay %s", saved[i],
				filepath.Join(saved[i], explore.ReportFile))
		}
	}
	if all[0].Envelope != nil { // a sweep: print the values at which the locks fail
		p.Line("")
		p.Err = errors.Join(p.Err, explore.WriteEnvelopes(w, all))
		if saved[0] == "" {
			return p.Err
		}
		p.Line("\nsaved in %[1]s; as a page with the picture: bench report %[1]s --html sweep.html", saved[0])
		return p.Err
	}
	for _, r := range all {
		if power := r.Beyond.Power(); r.Found == nil && power != "" {
			p.Line("\n%s", power)
		}
	}
	if slices.ContainsFunc(all, func(r explore.Report) bool { return r.Found == nil }) {
		p.Line("\n%s", explore.Bounded)
	}
	return p.Err
}
