package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/results/report"
)

func (e Env) reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "report RUN...", Short: "print saved runs again, or write them as one page", Args: e.takes(1, unlimited),
		ValidArgsFunction: completeRuns,
		Long: "report prints the tables of saved runs: a run is a directory, or its name, or the beginning of its\n" +
			"name, where runs are saved, as in latest. What is no run is passed over. With --html it writes one\n" +
			"page instead, which needs no network: verdicts, latency, who held the lock when, fairness, cost,\n" +
			"faults, and all runs compared.",
		Example: "  bench report latest\n  bench report results/runs/* --html report.html",
	}
	var page string
	o := newOptions(c, harness.Default())
	o.Written(flag(session, "html", "write one page to this file instead of printing tables"), &page)
	o.out("where runs are saved")
	return e.command(c, o, e.simple(o, func(_ context.Context, args []string) error {
		found, err := e.reported(o, args, page != "")
		switch {
		case err != nil:
			return err
		case len(found.dirs)+len(found.dead) == 0:
			return found.damaged
		case page == "":
			return errors.Join(found.damaged, e.printRuns(found))
		}
		err = report.Write(page, found.dirs, report.Unsaved{})
		if err == nil || errors.Is(err, results.ErrDamaged) {
			_, _ = fmt.Fprintln(e.Stderr, "wrote", page)
		}
		return errors.Join(found.damaged, err)
	}))
}

// toReport is the input of the command "report". A run whose process was killed has no record, but its history was
// judged, so it has a judgement in dead. Damaged files do not keep the others from being reported.
type toReport struct {
	dirs    []string
	runs    []results.Run
	dead    []results.Judgement
	damaged error
}

// The method reported reads the runs that the arguments name. It skips files that are not runs. If there are only
// such files, it reports them as mistakes.
func (e Env) reported(o *options, args []string, page bool) (r toReport, err error) {
	var strange []string
	dirs, err := runDirs(args, o.plan.Out)
	if err != nil {
		o.Mistake("", "%v", err)
	}
	for _, dir := range dirs {
		run, err := record(dir)
		if run != nil && !page { // the page reads the files itself
			r.damaged = errors.Join(r.damaged, results.Undamaged(dir, run))
		}
		switch {
		case errors.Is(err, results.ErrDamaged):
			r.damaged = errors.Join(r.damaged, err)
		case err != nil:
			o.Mistake("", "%v", err)
		case run != nil:
			r.dirs, r.runs = append(r.dirs, dir), append(r.runs, *run)
		case !isRun(dir):
			strange = append(strange, dir)
		case page:
			o.Mistake("", "%v", noRun(dir, o.plan.Out))
		default:
			j, failed := judged(dir)
			if r.dead = append(r.dead, j); failed != nil {
				o.Mistake("", "%v", failed)
			}
		}
	}
	switch {
	case len(r.dirs)+len(r.dead) > 0 && len(strange) > 0:
		_, _ = fmt.Fprintf(e.Stderr, "passed over, as no run: %s\n", strings.Join(strange, ", "))
	case len(strange) > 0:
		for _, dir := range strange {
			o.Mistake("", "%v", noRun(dir, o.plan.Out))
		}
	}
	return r, o.invalid()
}

func (e Env) printRuns(r toReport) error {
	runs, judged := r.runs, r.dead
	for i, dir := range r.dirs {
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
