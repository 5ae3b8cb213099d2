package cli

import (
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
	problems []error
}

func (r *reports) save(dir string) {
	r.dirs = append(r.dirs, dir)
	if err := report.Write(filepath.Join(dir, report.File), []string{dir}); err != nil {
		r.problems = append(r.problems, err)
	}
}

// compare writes one report of all runs beside them, if there are several.
func (r *reports) compare(out string) {
	if len(r.dirs) < 2 {
		return
	}
	if err := report.Write(filepath.Join(out, report.File), r.dirs); err != nil {
		r.problems = append(r.problems, err)
	}
}

// close writes what is to be written of all runs together and says what went wrong: a run is a run without its report.
func (r *reports) close(e Env, out string) {
	r.compare(out)
	for _, problem := range r.problems {
		_, _ = fmt.Fprintln(e.Stderr, "warning:", problem)
	}
}

// reportCommand prints saved runs again, or writes them as one page.
func (e Env) reportCommand() *cobra.Command {
	var page, out string
	c := &cobra.Command{
		Use: "report RUN...", Short: "print saved runs again, or write them as one page", Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: completeRuns,
		Long: "report prints the tables of saved runs: a run is a directory, or the name of one where runs are saved, as in\n" +
			"latest. With --html it writes one page instead, which needs no network: verdicts, latency, who held the lock\n" +
			"when, fairness, cost, faults, and all runs compared.",
		Example: "  bench report latest\n  bench report results/runs/* --html report.html",
		RunE: func(_ *cobra.Command, args []string) error {
			dirs := make([]string, len(args))
			for i, arg := range args {
				dirs[i] = savedRun(arg, out)
			}
			if page != "" {
				return e.writePage(page, dirs)
			}
			return e.printRuns(dirs)
		},
	}
	c.Flags().StringVar(&page, "html", "", "write one page to this file instead of printing tables")
	c.Flags().StringVar(&out, "out", harness.Default().Out, "where runs are saved")
	return c
}

// savedRun finds the directory that a person means.
func savedRun(name, out string) string {
	if _, err := os.Stat(name); err != nil && filepath.Base(name) == name {
		return filepath.Join(out, name)
	}
	return name
}

func (e Env) writePage(page string, dirs []string) error {
	for _, dir := range dirs {
		if _, err := results.ReadRun(dir); err != nil {
			return err
		}
	}
	if err := report.Write(page, dirs); err != nil {
		return &fileError{err}
	}
	_, _ = fmt.Fprintln(e.Stderr, "wrote", page)
	return nil
}

func (e Env) printRuns(dirs []string) error {
	var runs []results.Run
	var judged []results.Judgement
	for _, dir := range dirs {
		run, err := results.ReadRun(dir)
		if err != nil {
			return err
		}
		runs = append(runs, *run)
		if _, err := os.Stat(filepath.Join(dir, results.HistoryFile)); err == nil {
			j := run.Judgement()
			j.Saved = dir
			judged = append(judged, j)
		}
	}
	if err := results.WriteText(e.Stdout, runs); err != nil || len(judged) == 0 {
		return err
	}
	_, _ = fmt.Fprintln(e.Stdout)
	return results.WriteVerdicts(e.Stdout, judged)
}
