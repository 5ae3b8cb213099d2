package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/results"
)

// Verify runs the command "verify" and returns its exit code.
func Verify(ctx context.Context, e Env) int {
	if len(e.Args) > 0 {
		switch e.Args[0] {
		case "check", "export":
			code := Passed
			return e.saved(ctx, "verify", &code, e.savedCommands(&code)...)
		}
	}
	code := Passed
	verify := e.planned(&cobra.Command{
		Use:   "verify",
		Short: "load plus faults, then judge",
		Long: "verify starts Redis deployments, lets workers take a lock that guards a shared page-view counter, breaks\n" +
			"things meanwhile, keeps every operation and judges the history. Its exit code is the verdict.\n\n" +
			"  verify [run]               load plus faults, then judge\n" +
			"  verify check FILE|RUN      judge a saved history again, without Redis\n" +
			"  verify export RUN          print a saved history as JSON lines\n" +
			"  verify matrix              locks x topologies x faults against the expected outcomes\n" +
			"  verify tour                how locks fail, and why, in about a minute",
		Example: "  verify --topology single --lock lease\n" +
			"  verify --topology sentinel --fault lost-grant\n" +
			"  verify --topology redlock --fault kill-node@2s,heal@5s --seed 7",
	}, true)
	verify.AddCommand(e.savedCommands(&code)...)
	return e.dispatch(ctx, []*command{verify, e.matrixCommand(), e.tourCommand()})
}

// savedCommands work on saved runs; code is where check leaves its exit code.
func (e Env) savedCommands(code *int) []*cobra.Command {
	var asJSON bool
	check := &cobra.Command{
		Use: "check FILE|RUN...", Short: "judge a saved history again, without Redis", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) (err error) {
			*code, err = e.check(args, asJSON)
			return err
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON document instead of text")
	export := &cobra.Command{
		Use: "export RUN", Short: "print a saved history as JSON lines", Args: cobra.ExactArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			h, _, err := open(args[0])
			if err != nil {
				return err
			}
			return history.WriteJSONL(e.Stdout, h)
		},
	}
	return []*cobra.Command{check, export}
}

// open reads a history from a file, or from the directory of a run.
func open(path string) (*history.History, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, path, err
	}
	if info.IsDir() {
		path = filepath.Join(path, results.HistoryFile)
	}
	h, err := history.Open(path)
	if err == nil {
		err = h.Validate()
	}
	if err != nil {
		return nil, path, &fileError{err}
	}
	return h, path, nil
}

// check judges every file and answers for the worst.
func (e Env) check(paths []string, asJSON bool) (int, error) {
	var all []results.Judgement
	for _, path := range paths {
		h, file, err := open(path)
		if err != nil {
			return Usage, err
		}
		j, err := judgement(h)
		if err != nil {
			return Broken, &fileError{fmt.Errorf("%s: %w", file, err)}
		}
		j.Saved = file
		all = append(all, j)
	}
	x := worstOf(all)
	if asJSON {
		return x.Code, e.document(struct {
			Schema int                 `json:"schema"`
			Exit   Exit                `json:"exit"`
			Runs   []results.Judgement `json:"runs"`
		}{schema, x, all})
	}
	return x.Code, results.WriteVerdicts(e.Stdout, all)
}

func judgement(h *history.History) (results.Judgement, error) {
	j := results.Judgement{
		Topology: h.Topology, Lock: h.Lock, Command: h.Command, Partial: h.Partial, Faults: []string{},
	}
	for _, f := range h.Faults {
		j.Faults = append(j.Faults, f.Name+f.At)
	}
	c, err := checker.Prepare(h)
	if err != nil {
		return j, err
	}
	j.Verdicts, err = checker.Judge(c)
	return j, err
}

// worstOf is the exit that judged histories ask for.
func worstOf(all []results.Judgement) Exit {
	x := Exit{Code: Passed}
	for i := range all {
		status, text := all[i].Status()
		switch {
		case status == checker.Fail:
			return Exit{Code: Violation, Reason: text}
		case status == checker.Inconclusive && x.Code == Passed:
			x = Exit{Code: Inconclusive, Reason: text}
		}
	}
	return x
}

// notify tells CI systems that are there: a JUnit file beside the runs, a step's summary and annotations.
func (e Env) notify(out string, all []results.Judgement) error {
	err := writeFile(filepath.Join(out, "junit.xml"), os.O_TRUNC, func(w io.Writer) error { return results.WriteJUnit(w, all) })
	return errors.Join(err, e.announce(all))
}

// announce writes a step's summary and annotations.
func (e Env) announce(all []results.Judgement) (err error) {
	if len(all) == 0 {
		return nil
	}
	if path := e.getenv("GITHUB_STEP_SUMMARY"); path != "" {
		err = writeFile(path, os.O_APPEND, func(w io.Writer) error { return results.WriteSummary(w, all) })
	}
	if e.getenv("GITHUB_ACTIONS") == "true" {
		err = errors.Join(err, results.WriteAnnotations(e.Stderr, all))
	}
	return err
}

func writeFile(path string, mode int, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// listFaults is the part of --list about what breaks.
func listFaults(line func(string, ...any)) {
	line("\nfaults")
	for _, f := range faults.All {
		line("  %-18s %s", f.Name, f.Doc)
	}
	line("  points: %v; %s: those that a right lock survives there; %s", faults.Points, faults.Auto, faults.None)
	line("\nchecks")
	for _, c := range checker.All {
		line("  %-18s %s", c.Name, c.Doc)
	}
}
