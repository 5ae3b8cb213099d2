package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/internal/story"
	"hammerlock/results"
	"hammerlock/scenarios"
)

func (e Env) verifyCommand() *cobra.Command {
	verify := e.planCommand(&cobra.Command{
		Use:   "verify",
		Short: "load plus faults, then judge",
		Long: "verify loads a distributed lock on real Redis deployments, breaks things meanwhile, and checks afterwards whether two\n" +
			"workers were ever inside at once. It runs all scenarios that apply to the lock, after it has explored the lock in\n" +
			"virtual time; with --fault or flags for the load it makes one run of that. Its exit code is the verdict.",
		Example: "  verify --topology single --lock lease                            # passes, in a few minutes\n" +
			"  verify --topology single --lock lease --scenario crash,late-holder\n" +
			"  verify --topology sentinel --fault lost-grant                    # exits 1: the classic lost lock\n" +
			"  verify --topology redlock --fault kill-node@2s,heal@5s --seed 7\n" +
			"  verify --lock all --expect --topology single                     # every lock against what its entry says\n" +
			"  verify conformance 'exec:python3 drivers/python/template.py'     # a lock in any language, claim by claim\n" +
			"  verify tour                                                      # how locks fail, and why",
	}, e.verifyPlan())
	verify.AddCommand(e.checkCommand(), e.certifyCommand(), e.exportCommand(), e.httpCommand(e.verifyPlan()),
		e.conformanceCommand(),
		e.exploreCommand(), e.wireCommand(), e.planFileCommand(e.verifyPlan()), e.tourCommand(), e.agentCommand(),
		e.failoverCommand(e.benchPlan()), e.soakCommand(e.verifyPlan()))
	return verify
}

func (e Env) checkCommand() *cobra.Command {
	c := &cobra.Command{Use: "check FILE|RUN...", Short: "judge a saved history again, without Redis",
		Args:              takes(1, unlimited),
		ValidArgsFunction: completeRuns}
	o := newOptions(c, harness.Default())
	o.out("where runs are saved")
	o.has(jsonOutput)
	o.strictFlag()
	return e.command(c, o, func(ctx context.Context, args []string) int {
		all, err := judgeFiles(o, args)
		if err != nil {
			return e.refuse(ctx, o, err)
		}
		whole := o.weigh(all, nil, nil)
		x := exit(ctx, whole, nil, nil)
		return e.answer(o, result{x, struct {
			Schema  int                 `json:"schema"`
			Exit    Exit                `json:"exit"`
			Verdict results.Whole       `json:"verdict"`
			Runs    []results.Judgement `json:"runs"`
		}{schema, x, whole, all}, (&results.Findings{Judged: all, Whole: whole}).Write, nil})
	})
}

func (e Env) exportCommand() *cobra.Command {
	c := &cobra.Command{Use: "export RUN",
		Short: "print a saved history as JSON lines, or write its violation as a test", Args: takes(1, 1),
		ValidArgsFunction: completeRuns,
		Long: "export prints a saved history as JSON lines. With --test it writes what the worst verdict says as a test instead, in the\n" +
			"language of the lock's library, which calls the library as --calls does. It needs a redis-server, and nothing of Hammerlock.\n" +
			"The test is run where it is written, with go, node or python3: one that is not red is not handed out.",
		Example: "  verify export latest\n  verify export latest --test lock_test.go --calls record/exported/calls/redsync.go",
	}
	o := newOptions(c, harness.Default())
	o.out("where runs are saved")
	var test, calls string
	o.Written(flag(session, "test", "write the violation as a test to this file, .go, .js or .py"), &test)
	o.Text(flag(session, "calls",
		"how the library is called, in the same language; record/exported/calls has examples"), "file", &calls)
	return e.command(c, o, e.simple(o, func(ctx context.Context, args []string) error {
		if (test == "") != (calls == "") {
			o.Mistake("test", "and --calls belong together")
		}
		path, err := locateOne(args[0], o.plan.Out)
		if err = errors.Join(o.invalid(), err); err != nil {
			return err
		}
		if test != "" {
			return e.exportTest(ctx, path, test, calls)
		}
		h, _, err := openHistory(path)
		if err != nil {
			return err
		}
		return history.WriteJSONL(e.Stdout, h)
	}))
}

// exportTest writes the story of a saved run that failed as a test that is red.
func (e Env) exportTest(ctx context.Context, path, test, calls string) error {
	_, err := story.Language(test)
	source, unread := os.ReadFile(calls)
	if err = errors.Join(err, unread); err != nil {
		return usage("%v", err)
	}
	h, _, err := openHistory(path)
	if err != nil {
		return err
	}
	j, err := judged(path)
	if err != nil {
		return err
	}
	explored, err := savedExploration(filepath.Join(path, exploreFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	i := slices.IndexFunc(j.Verdicts, func(v checker.Verdict) bool {
		return v.Status == checker.Fail && (explored.Found == nil || v.Checker == explored.Found.Checker)
	})
	if i < 0 {
		return usage("%s: no verdict failed: there is no story to tell", path)
	}
	told, err := story.Of(h, &j.Verdicts[i], explored.Found)
	if err != nil {
		return usage("%s: %v", path, err)
	}
	if err := told.Export(ctx, test, string(source)); err != nil {
		return fmt.Errorf("%s with %s: %w", test, calls, err)
	}
	return nil
}

// strictFlag declares whether a scenario may be undecided.
func (o *options) strictFlag() {
	o.Toggle(flag(session, "strict",
		"exit 3 if any scenario is undecided; else at least nine in ten must have passed, and safety\nunder contention, late holders, crashes and lost answers"), "", &o.strict)
}

// weigh makes one verdict of many. Cut says why the command ended early; nil if it did not.
func (o *options) weigh(all []results.Judgement, not []results.NotRun, cut error) results.Whole {
	classes, why := scenarios.Classes, ""
	if o.strict {
		classes = nil
	}
	if cut != nil {
		why = cut.Error()
	}
	return results.Weigh(all, not, why, classes)
}

// replays is the command that shows the first run that failed, or else the first, again; empty without one.
func (o *options) replays(runs []results.Run) string {
	if len(runs) == 0 {
		return ""
	}
	shown := max(slices.IndexFunc(runs, func(r results.Run) bool { return r.Failed() }), 0)
	return typed("bench") + " replay " + quote(filepath.Join(o.plan.Out, runs[shown].Name))
}

// repeats is the command that does all of a plan again.
func (o *options) repeats(c *cobra.Command, p harness.Plan) string {
	if o.explores {
		p.Scenarios = append([]scenarios.Scenario{exploreScenario}, p.Scenarios...)
	}
	return repeat(c, p)
}

// openHistory reads a history from a file, or from the directory of a run.
func openHistory(path string) (*history.History, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, path, usage("%v", err)
	}
	if info.IsDir() {
		dir := path
		path = filepath.Join(dir, results.HistoryFile)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return nil, path, usage("%s: no history: runs of verify keep one (%s), those of bench do not", dir,
				results.HistoryFile)
		}
	}
	h, err := history.Open(path)
	return h, path, err
}

func judgeFiles(o *options, args []string) (all []results.Judgement, err error) {
	errs := []error{o.invalid()}
	paths, err := runDirs(args, o.plan.Out)
	if err != nil {
		errs = append(errs, usage("%v", err))
	}
	for _, path := range paths {
		j, err := judged(path)
		errs = append(errs, err)
		if j.Saved != "" {
			all = append(all, j)
		}
	}
	return results.Standing(all), errors.Join(errs...)
}

// judged judges again what was saved: a run, what is left of one whose writer was killed, or a history in a file. It
// has a Saved unless nothing could be read.
func judged(path string) (j results.Judgement, err error) {
	if r, err := results.ReadRun(path); err == nil {
		verdicts, err := r.Judge(path)
		j = r.Judgement()
		j.Verdicts, j.Saved = verdicts, path
		return j, err
	}
	h, file, err := openHistory(path)
	if err != nil {
		return j, err
	}
	j = results.Judgement{Topology: h.Topology, Lock: h.Lock, Command: h.Command, Partial: h.Partial,
		Faults: []string{}, Saved: file}
	for _, f := range h.Faults {
		j.Faults = append(j.Faults, f.Name+f.At)
	}
	defer h.Space.Free()
	c, err := checker.Prepare(h)
	if err == nil {
		j.Verdicts, err = checker.Judge(c)
		c.Free()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return j, err
}
