package cli

import (
	"cmp"
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
		Args:              e.takes(1, unlimited),
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

// The function judged judges saved data again. The path names a saved run, the directory of a run whose process was
// killed, or a history file. If nothing could be read, the field Saved of the result is empty.
func judged(path string) (j results.Judgement, err error) {
	r, err := record(path)
	if err == nil && r != nil && r.Recorded {
		_, err = historyOf(path)
	}
	if err != nil {
		return j, err
	}
	if r != nil {
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
	_, err = record(dir)
	path, missing := historyOf(dir)
	if err = cmp.Or(err, missing); err != nil {
		return nil, path, err
	}
	h, err := results.OpenHistory(path)
	if err == nil {
		h, err = source.Recorded(dir, h)
	}
	return h, path, err
}

// record reads the saved record of a run. It returns nil without an error if no record exists: the path names a
// file, or the process was killed before it wrote the record.
func record(path string) (*results.Run, error) {
	if _, err := os.Stat(filepath.Join(path, results.RunFile)); err != nil {
		return nil, nil
	}
	r, err := results.ReadRun(path)
	if err != nil && !errors.Is(err, results.ErrDamaged) {
		err = usage("%v", err)
	}
	return r, err
}

// historyOf returns the path of the history in the directory of a run.
func historyOf(dir string) (path string, err error) {
	path = filepath.Join(dir, results.HistoryFile)
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return path, usage("%s: no history: runs of verify keep one (%s), those of bench do not", dir,
			results.HistoryFile)
	}
	return path, nil
}
