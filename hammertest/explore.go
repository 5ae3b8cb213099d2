package hammertest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/results"
)

// Explore runs clients of the lock on servers in memory, in virtual time. It tries every order of their messages with
// a bounded number of deviations from the plain order. A violation fails the test with its trace. An exploration that
// does not end within Options.Budget skips the test, and says how far it came. It needs no server, and checks the
// lock's client only. With -short it allows one deviation.
func Explore(t *testing.T, open Open, c Config) {
	t.Helper()
	s := begin(t, open, c)
	if s == nil {
		return
	}
	o := s.bounds()
	if mistakes := o.Check(); len(mistakes) > 0 {
		t.Fatalf("hammertest: Config.Options: %s", strings.ReplaceAll(strings.Join(mistakes, "; "), "--", ""))
	}
	if err := explore.Excluded(s.spec, o); err != nil {
		t.Fatalf("hammertest: the lock cannot be explored: %v", err)
	}
	orders := explore.Orders{Lock: s.spec.Name, Options: o, Command: s.command(""),
		File: filepath.Join(t.ArtifactDir(), results.HistoryFile)}
	r, err := explore.InProcess(t.Context(), orders, childArgs(s.spec.Name)...)
	if err != nil {
		t.Fatalf("hammertest: %v", err)
	}
	if r.Status == checker.Pass {
		t.Log(r.Verdict())
		return
	}
	if r.Unfinished() {
		t.Skip("undecided, which is no failure of the lock (Config.Options.Budget is too small): " + r.Verdict())
	}
	text := strings.ToUpper(r.Status.String()) + "  " + r.Verdict()
	if r.Found != nil {
		text += ": " + r.Found.Summary + "\n\n" + r.Found.Text() + "\n"
	}
	if _, missing := os.Stat(orders.File); missing == nil { // the file is missing if the lock has ended its process
		saved, err := keep(orders.File)
		report, wrong := json.MarshalIndent(r, "", "  ")
		if err = errors.Join(err, wrong); err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(saved), explore.ReportFile), append(report, '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
		text += "\nhistory  " + saved
	}
	t.Fatal("\n" + text + "\nrepeat   " + orders.Command)
}

// bounds are Config.Options or the defaults. Several sites have many more orders of messages than one.
func (s *suite) bounds() explore.Options {
	o := explore.Defaults
	if s.topology.Sites > 1 {
		o.Sites, o.Visits, o.Deviations = 3, 1, 1
	}
	if s.Options != nil {
		o = *s.Options
	}
	o.Jobs = max(o.Jobs, 1) // schedules that run at the same time would share the package variables of a lock
	if testing.Short() {
		o.Deviations = min(o.Deviations, 1)
	}
	return o
}
