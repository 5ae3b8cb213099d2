package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/report"
)

// reports writes the reports of runs as they are saved, and remembers what went wrong.
type reports struct {
	dirs     []string
	problems error
}

func (r *reports) save(dir string) {
	r.dirs = append(r.dirs, dir)
	r.write(dir, dir)
}

func (r *reports) write(to string, dirs ...string) {
	r.problems = errors.Join(r.problems, report.Write(filepath.Join(to, report.File), dirs))
}

// close writes one report of all runs, if there are several, and prints what went wrong: a run is a run without its report.
func (r *reports) close(e Env, out string) {
	if len(r.dirs) > 1 {
		r.write(out, r.dirs...)
	}
	e.lines("warning:", r.problems)
}

// reportCommand prints saved runs again, or writes them as one page.
func (e Env) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "report RUN...", Short: "print saved runs again, or write them as one page", Args: takes(1, unlimited), ValidArgsFunction: completeRuns,
		Long: "report prints the tables of saved runs: a run is a directory, or the name of one where runs are saved, as in\n" +
			"latest. With --html it writes one page instead, which needs no network: verdicts, latency, who held the lock\n" +
			"when, fairness, cost, faults, and all runs compared.",
		Example: "  bench report latest\n  bench report results/runs/* --html report.html",
	}
	var page string
	o := newOptions(c, harness.Default())
	o.text(flag{session, "html", "write one page to this file instead of printing tables"}, "file", &page)
	o.out("where runs are saved")
	return e.command(c, o, e.simple(o, func(_ context.Context, args []string) error {
		var dirs []string
		var runs []results.Run
		var dead []results.Judgement
		for _, arg := range args {
			dir := savedRun(arg, o.plan.Out)
			run, err := results.ReadRun(dir)
			if h, file, failed := openHistory(dir); err != nil && failed == nil && page == "" {
				j, err := judgement(h) // its writer was killed, but what it had recorded can be judged
				if err != nil {
					return err
				}
				j.Saved = file
				dead = append(dead, j)
				continue
			}
			if err != nil {
				o.mistake("%v", err)
				continue
			}
			dirs, runs = append(dirs, dir), append(runs, *run)
		}
		if err := o.invalid(); err != nil {
			return err
		}
		if page == "" {
			return e.printRuns(dirs, runs, dead)
		}
		if err := report.Write(page, dirs); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(e.Stderr, "wrote", page)
		return nil
	}))
}

// savedRun finds the directory of a run: a path, or a name where runs are saved.
func savedRun(name, out string) string {
	if _, err := os.Stat(name); err != nil && filepath.Base(name) == name {
		return filepath.Join(out, name)
	}
	return name
}

func (e Env) printRuns(dirs []string, runs []results.Run, judged []results.Judgement) error {
	for i, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, results.HistoryFile)); err == nil {
			j := runs[i].Judgement()
			j.Saved = dir
			judged = append(judged, j)
		}
	}
	if len(runs) > 0 {
		if err := results.WriteText(e.Stdout, runs); err != nil || len(judged) == 0 {
			return err
		}
		_, _ = fmt.Fprintln(e.Stdout)
	}
	return results.WriteVerdicts(e.Stdout, judged)
}
