package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// isRun tells whether a directory contains a run. A run whose process was killed has only a history.
func isRun(dir string) bool {
	return slices.ContainsFunc([]string{results.RunFile, results.HistoryFile}, func(file string) bool {
		_, err := os.Stat(filepath.Join(dir, file))
		return err == nil
	})
}

// foundKilled tells the user that the process of an earlier run was killed, and how to judge its history.
func (e Env) foundKilled(dir string) {
	e.lines("note:", fmt.Errorf("%s has the history of a run that was killed: verify check %s judges it\n"+
		"it stays until you remove it, or such histories take more than %d GiB: then the oldest goes", dir, quote(dir),
		results.MostKilled>>30))
}

// noRun returns the error for a path that exists but is not a run.
func noRun(path, out string) error {
	return fmt.Errorf("%s is no saved run: it has no %s; a run is a directory in %s, as latest is", path,
		results.RunFile, out)
}

// locate returns the paths that an argument names. It tries, in this order: an existing path, a pattern of paths, a
// name or pattern in the directory of runs, and the first letters of a name there.
func locate(arg, out string) ([]string, error) {
	if _, err := os.Stat(arg); err == nil {
		return []string{arg}, nil
	}
	for _, pattern := range []string{arg, filepath.Join(out, arg)} {
		if found, err := filepath.Glob(pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", arg, err)
		} else if len(found) > 0 {
			return found, nil
		}
	}
	begin, _ := filepath.Glob(filepath.Join(out, arg+"*")) // an error is impossible here: the pattern was valid above
	begin = slices.DeleteFunc(begin, func(dir string) bool { return !isRun(dir) })
	switch {
	case len(begin) == 1:
		return begin, nil
	case len(begin) > 1:
		return nil, fmt.Errorf("%s: %d runs in %s begin with that: %s and so on", arg, len(begin), out,
			filepath.Base(begin[0]))
	}
	return nil, fmt.Errorf("%s: no such run, here or in %s%s", arg, out,
		human.Meant(arg, human.Names(runsIn(out), filepath.Base)))
}

func locateOne(arg, out string) (string, error) {
	all, err := locate(arg, out)
	if err == nil && len(all) > 1 {
		return "", usage("%s names %d runs: name one of them", arg, len(all))
	}
	if err != nil {
		return "", usage("%v", err)
	}
	return all[0], nil
}

// runDirs returns the directories of all runs that the arguments name, without duplicates. An argument may also name
// a directory that contains runs. The link "latest" names a run that has another name, too.
func runDirs(args []string, out string) (dirs []string, err error) {
	seen := map[string]bool{}
	for _, arg := range args {
		found, wrong := locate(arg, out)
		err = errors.Join(err, wrong)
		for _, path := range found {
			for _, dir := range runsIn(path) {
				real, wrong := filepath.EvalSymlinks(dir)
				if real = cmp.Or(real, dir); wrong != nil || !seen[real] {
					dirs = append(dirs, dir)
				}
				seen[real] = true
			}
		}
	}
	return dirs, err
}

// runsIn returns the paths of the runs in a directory. If the argument dir is itself a run, or contains none, it
// returns dir.
func runsIn(dir string) (dirs []string) {
	inside, _ := filepath.Glob(filepath.Join(dir, "*"))
	inside = slices.DeleteFunc(inside, func(path string) bool { return !isRun(path) })
	if isRun(dir) || len(inside) == 0 {
		return []string{dir}
	}
	return inside
}

// savedRuns reads all runs that a comma-separated list names.
func savedRuns(list, out string) (runs []results.Run, err error) {
	dirs, err := runDirs(strings.Split(list, ","), out)
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		r, err := results.ReadRun(dir)
		if err != nil && !isRun(dir) {
			err = noRun(dir, out)
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, *r)
	}
	return runs, nil
}

// completeRuns completes the name of a saved run. If the user typed a path, it completes paths.
func completeRuns(c *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
	dir, shown := filepath.Dir(typed), func(path string) string { return path }
	if !strings.ContainsRune(typed, filepath.Separator) {
		dir, shown = c.Flag("out").Value.String(), filepath.Base
	}
	for _, run := range runsIn(dir) {
		if name := shown(run); isRun(run) && strings.HasPrefix(name, typed) {
			all = append(all, name)
		}
	}
	return all, cobra.ShellCompDirectiveDefault
}
