package cli

import (
	"errors"
	"path/filepath"

	"hammerlock/results/report"
)

// The type reports writes the report of each run when the run is saved, and collects errors.
type reports struct {
	dirs     []string
	problems error
}

func (r *reports) write(to string, dirs []string, unsaved report.Unsaved) {
	r.problems = errors.Join(r.problems, report.Write(filepath.Join(to, report.File), dirs, unsaved))
}

// The method last returns the path of the report on all runs. With a single run, it is the report on that run; with
// none, it is empty.
func (r *reports) last(out string) string {
	switch len(r.dirs) {
	case 0:
		return ""
	case 1:
		out = r.dirs[0]
	}
	return filepath.Join(out, report.File)
}

// close writes the report on all runs, if there are at least two, and prints the collected errors.
func (r *reports) close(e Env, out string, unsaved report.Unsaved) {
	if len(r.dirs) > 1 {
		r.write(out, r.dirs, unsaved)
	}
	e.lines("warning:", r.problems)
}

// save writes the report of a run. It returns no error, because a run is valid without its report.
func (r *reports) save(dir string) error {
	r.dirs = append(r.dirs, dir)
	r.write(dir, []string{dir}, report.Unsaved{})
	return nil
}
