package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/internal/tour"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// unexpected reports flags and values that need --expect, if --expect is missing.
func (o *options) unexpected() {
	if o.markdown != "" {
		o.Mistake("markdown", "%s: it goes with --expect", o.markdown)
	}
	if f := o.Flags.Lookup("lock"); f != nil {
		for _, name := range settings.Split(f.Value.String()) {
			if lockGroups[name] != nil {
				o.Mistake("lock", "%s: it goes with --expect, which knows what to expect of each", name)
			}
		}
	}
}

// The function wanted returns the rows that the table of --expect has for a lock. A broken lock has one row: it must
// show one of its causes. A correct lock has a row for its default run, and one for each fault or scenario that it is
// expected to fail.
func wanted(l locks.Spec) (all []results.Expected) {
	if l.Broken != "" {
		return []results.Expected{{Lock: l.Name, Causes: l.Expected("")}}
	}
	if l.Sites != locks.NoSite {
		all = append(all, results.Expected{Lock: l.Name})
	}
	for _, x := range l.Expect {
		under := cmp.Or(x.Fault, x.Scenario)
		i := slices.IndexFunc(all, func(r results.Expected) bool { return r.Under == under })
		if i < 0 {
			i, all = len(all), append(all, results.Expected{Lock: l.Name, Under: under})
		}
		all[i].Causes, all[i].Passes = append(all[i].Causes, x.Cause), x.Sometimes
	}
	return all
}

// Documented returns the rows that the document with the table should have. A row that must pass is repeated for each
// topology that the lock can run on.
func Documented(all []locks.Spec) (rows []results.Expected) {
	for _, l := range all {
		for _, r := range wanted(l) {
			if len(r.Causes) > 0 {
				rows = append(rows, r)
				continue
			}
			for _, t := range topologies.All {
				if r.Topology = t.Name; l.Fits(t) {
					rows = append(rows, r)
				}
			}
		}
	}
	return rows
}

// expecting carries out "verify --expect". It checks whether locks fail, or pass, as their catalogue entries say.
type expecting struct {
	*series
	c    *cobra.Command
	rows []expectedRow
	done int
	errs []error
}

// expectedRow is a row of the table, with the parts that produce its result. The parts run in order, and stop as soon
// as a run shows an expected cause.
type expectedRow struct {
	results.Expected
	parts []expectedPart
}

// expectedPart is one plan or exploration. It is repeated until it shows an expected cause; the field again limits
// how often.
type expectedPart struct {
	plan     harness.Plan
	explores bool // explore the lock instead of running the plan
	again    harness.Again
}

func (e Env) expectations(ctx context.Context, s signals, c *cobra.Command, o *options) int {
	x := &expecting{series: &series{e: e, o: o, root: c, warm: new(harness.Warm), tolerant: true}, c: c}
	failFast := o.plan.FailFast
	err := x.carryOut(ctx, s, func(stop context.Context) error {
		err := x.prepare(stop)
		o.plan.FailFast = false // here it ends the command after a failed row, not a job after a failed run
		return err
	}, func(yield func(*step) bool) { x.steps(yield, failFast) })
	if x.begun.IsZero() {
		return e.refuse(s.stop, o, err)
	}
	return x.answer(s.stop, err)
}

// steps runs all parts of all rows in order. If the argument failFast is true, a row that is not as expected is the
// last.
func (x *expecting) steps(yield func(*step) bool, failFast bool) {
	for i := range x.rows {
		r := &x.rows[i]
		if !x.row(yield, r) {
			return
		}
		x.done++
		rest := time.Since(x.begun) / time.Duration(x.done) * time.Duration(len(x.rows)-x.done)
		x.e.say(x.o, "[%d/%d] %s%s", x.done, len(x.rows), r.Line(), left(rest))
		if failFast && r.Met == checker.Fail {
			return
		}
	}
}

func (x *expecting) answer(stop context.Context, err error) int {
	var all []results.Expected
	var judged []results.Judgement
	for i := range x.rows[:x.done] {
		all, judged = append(all, x.rows[i].Expected), append(judged, x.rows[i].Judgement())
	}
	x.e.complain(err)
	err = errors.Join(append(x.errs, err)...) // these errors were printed when they occurred
	exit := exit(stop, results.Weigh(judged, nil, "", nil), nil, err)
	document := Document{Schema: schema, Exit: exit, Saved: x.o.plan.Out, Expected: all}
	var unwritten error
	if x.o.markdown != "" {
		unwritten = x.document(all)
	}
	text := func(w io.Writer) error { return results.WriteExpected(w, all) }
	return x.e.answer(x.o, result{exit, document, text, x.o.plan.Out, "", judged, unwritten})
}

// document writes the table into the document that --markdown names, or into a new document. Rows that were not run
// keep their old results.
func (x *expecting) document(all []results.Expected) error {
	old, err := os.ReadFile(x.o.markdown)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	made := fmt.Sprintf("%s, %.7s", time.Now().UTC().Format(time.DateOnly), harness.Version())
	text := results.PutExpected(string(old), all, Documented(x.e.knows().Locks), made)
	return os.WriteFile(x.o.markdown, []byte(text), 0o644)
}

// notExpected lists flags of verify that are mistakes together with --expect.
var notExpected = []string{"addr", "gate", "benchfmt", "agents"}

// prepare collects all mistakes, and fills x.rows.
func (x *expecting) prepare(stop context.Context) error {
	o := x.o
	o.scenarios()
	o.Flags.VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		if v != nil && f.Changed && (v.Part == load || v.Part == instead || slices.Contains(notExpected, f.Name)) {
			o.Mistake(f.Name,
				": --expect runs scenarios, which have loads and faults of their own, on servers of its own: "+
					"leave it out, or --expect")
		}
	})
	if n := o.Lists[phasesKey]; n != nil {
		o.Wrong(n, "%s: --expect runs scenarios, which have loads of their own", phasesKey)
	}
	server, err := topologies.FindServer(stop, o.plan.RedisServer)
	if err != nil || len(o.Mistakes) > 0 {
		_, err = o.plan.Check(stop, o.Mistakes)
		return cmp.Or(err, o.invalid())
	}
	if o.tui == tuiAuto {
		o.tui = tuiOff
	}
	o.plan.Out = folder(o.plan, "expect")
	for n := range o.count {
		for _, t := range o.plan.Topologies {
			for _, l := range o.plan.Locks {
				if l.Open == nil && l.Program == nil {
					l = locks.Auto(o.plan.Known.Locks, t)
				}
				if !l.Fits(t) || l.Runs(server) != nil {
					continue
				}
				if err := x.add(stop, n, l, t); err != nil {
					return err
				}
			}
		}
	}
	if err := o.invalid(); err != nil {
		return err
	}
	if names := x.without(); len(names) > 0 {
		on := human.Names(o.plan.Topologies, func(t topologies.Spec) string { return t.Name })
		why := fmt.Errorf("nothing is expected on %s, %s, of %s", human.List(on), server, human.List(names))
		if len(x.rows) == 0 {
			return usage("--expect: %v", why)
		} else if !o.quiet {
			x.e.lines("note:", why)
		}
	}
	return os.MkdirAll(o.plan.Out, 0o755)
}

func (x *expecting) without() (names []string) {
	for _, l := range x.o.plan.Locks {
		row := slices.ContainsFunc(x.rows, func(r expectedRow) bool { return r.Lock == l.Name })
		if l.Name != "" && !row && !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names
}

// add appends to x.rows the rows of a lock on a topology. The number of the round is added to the seed. A row that
// expects a failure is added only once for each round, on the first topology where the failure is possible.
func (x *expecting) add(stop context.Context, round int, l locks.Spec, t topologies.Spec) error {
	for _, row := range wanted(l) {
		r := expectedRow{Expected: row}
		r.Topology, r.Seed = t.Name, x.o.plan.Workload.Seed+uint64(round)
		p := x.o.plan
		p.Topologies, p.Locks, p.Workload.Seed = []topologies.Spec{t}, []locks.Spec{l}, r.Seed
		r.Command = x.o.repeats(x.c, p) + " --expect"
		elsewhere := slices.ContainsFunc(x.rows, func(o expectedRow) bool {
			return o.Lock == r.Lock && o.Under == r.Under && o.Seed == r.Seed
		})
		if len(r.Causes) > 0 && (elsewhere || l.Broken != "" && (t.Sites > 1) != (l.Sites == locks.ManySites)) {
			continue
		}
		switch shows, scenario := scenarios.Find(r.Under); {
		case r.Under == "":
			r.parts = x.parts(l, p)
		case scenario:
			p.Scenarios = []scenarios.Scenario{shows}
			r.parts = []expectedPart{{plan: p, again: harness.NextSeed}}
		default:
			short := tour.Short(l, t, r.Under)
			short.Known, short.RedisServer, short.Out, short.Workload.Seed = p.Known, p.RedisServer, p.Out,
				p.Workload.Seed
			r.parts = []expectedPart{{plan: short, again: harness.Doubling}}
		}
		var apply []expectedPart // a part that does not apply to the lock on this topology is left out
		var mistakes human.Mistakes
		for _, part := range r.parts {
			_, err := part.plan.Check(stop, nil)
			if err == nil {
				apply = append(apply, part)
			} else if invalid, ok := errors.AsType[*harness.UsageError](err); ok {
				mistakes.Add(invalid.Mistakes...)
			} else {
				return err
			}
		}
		if r.parts = apply; len(apply) == 0 && r.Under == "" {
			x.o.Mistakes.Add(mistakes...)
		}
		if len(r.parts) > 0 {
			x.rows = append(x.rows, r)
		}
	}
	return nil
}

// parts returns the parts of a lock's row without a fault. A broken lock begins with the scenarios that should reveal
// its defect, and repeats them. For a correct lock, scenarios under which it may fail have rows of their own.
func (x *expecting) parts(l locks.Spec, p harness.Plan) (all []expectedPart) {
	var named, others []scenarios.Scenario
	for _, s := range p.Scenarios {
		if !l.Shows(s.Name) {
			others = append(others, s)
		} else if l.Broken != "" {
			named = append(named, s)
		}
	}
	with := func(list []scenarios.Scenario) harness.Plan {
		p := p
		p.FailFast = p.FailFast && l.Broken == ""
		p.Scenarios = list
		return p
	}
	if len(named) > 0 {
		all = append(all, expectedPart{plan: with(named), again: slices.Repeat(harness.Again{1}, p.Attempts)})
	}
	if x.o.explores {
		all = append(all, expectedPart{plan: with(p.Scenarios), explores: true, again: harness.Again{1}})
	}
	if len(others) > 0 {
		all = append(all, expectedPart{plan: with(others), again: harness.Again{1}})
	}
	return all
}

// The method row runs the parts of a row until one shows an expected cause. It returns false if the whole series must
// end.
func (x *expecting) row(yield func(*step) bool, r *expectedRow) (goesOn bool) {
	begun := time.Now()
	defer func() { r.Took = time.Since(begun) }()
	var judged []results.Judgement
	var not []results.NotRun
	for _, part := range r.parts {
		for part.plan = range part.again.Of(part.plan) {
			x.o.explored = nil
			st := &step{plan: part.plan, more: func(stop context.Context, job *harness.Job) bool {
				return x.part(stop, r, job, part.explores, time.Since(begun), &not)
			}}
			if goesOn = yield(st); !goesOn {
				return false
			}
			judged = append(append(judged, x.o.explored...), judgements(part.plan.Out, st.runs)...)
			if st.job != nil && !part.explores {
				not = append(not, st.job.NotRun...)
			}
			done := r.Take(judged, x.o.weigh(judged, not, st.err))
			if st.err != nil {
				x.errs, r.Found = append(x.errs, st.err), "could not be run"
			}
			if done || st.err != nil {
				return true
			}
		}
	}
	return true
}

// part prepares the job of a part. If the argument explores is true, it explores the lock instead, and no job is
// needed. It returns whether to run the job.
func (x *expecting) part(stop context.Context, r *expectedRow, job *harness.Job, explores bool, since time.Duration,
	not *[]results.NotRun) (begins bool) {
	if explores {
		left, _ := x.exploreFirst(stop, job)
		*not = append(*not, left...)
		return false
	}
	job.Earlier = map[string]time.Duration{r.Lock: since}
	job.Enough = func(run *results.Run) bool {
		_, shown := results.Met(r.Causes, checker.Inconclusive, run.Verdicts)
		return shown != ""
	}
	return true
}
