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
	"hammerlock/explore"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/internal/story"
)

func (e Env) exportCommand() *cobra.Command {
	c := &cobra.Command{Use: "export RUN",
		Short: "print a saved history as JSON lines, or write its violation as a test", Args: e.takes(1, 1),
		ValidArgsFunction: completeRuns,
		Long: "export prints a saved history as JSON lines. With --test it writes what the worst verdict says as a\n" +
			"test instead, in the language of the lock's library, which calls the library as --calls does. It\n" +
			"needs a redis-server, and nothing of Hammerlock. The test is run where it is written, with go, node\n" +
			"or python3: one that is not red is not handed out.",
		Example: "  verify export latest\n  verify export latest --test lock_test.go --calls " +
			"record/exported/calls/redsync.go",
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

// exportTest writes a test that repeats the story of a failed run, and so fails. The extension of the file test
// chooses the language. The file calls has code that the test uses to call the lock.
func (e Env) exportTest(ctx context.Context, path, test, calls string) error {
	_, err := story.Language(test)
	source, unread := os.ReadFile(calls)
	if err = errors.Join(err, unread); err != nil {
		return usage("%v", err)
	}
	h, file, err := openHistory(path)
	if err != nil {
		return err
	}
	j, err := judged(path)
	if err != nil {
		return err
	}
	explored, err := savedExploration(filepath.Join(filepath.Dir(file), explore.ReportFile))
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
