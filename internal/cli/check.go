package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/harness"
	source "hammerlock/internal/program"
	"hammerlock/results"
)

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
		document := struct {
			Schema  int                 `json:"schema"`
			Exit    Exit                `json:"exit"`
			Verdict results.Whole       `json:"verdict"`
			Runs    []results.Judgement `json:"runs"`
		}{schema, x, whole, all}
		text := (&results.Findings{Judged: all, Whole: whole}).Write
		return e.answer(o, result{exit: x, document: document, text: text})
	})
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

// judged judges saved data again: a run, a run whose process was killed, or a history in a file. The field Saved of the
// result is empty if nothing could be read.
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

// openHistory reads a history from a file, or from the directory of a run. It also returns the path of the file.
func openHistory(path string) (*history.History, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, path, usage("%v", err)
	}
	if !info.IsDir() {
		h, err := history.Open(path)
		return h, path, err
	}
	dir := path
	path = filepath.Join(dir, results.HistoryFile)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil, path, usage("%s: no history: runs of verify keep one (%s), those of bench do not", dir,
			results.HistoryFile)
	}
	h, err := history.Open(path)
	if err == nil {
		h, err = source.Recorded(dir, h)
	}
	return h, path, err
}
