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

// Explore runs clients of the lock in virtual time, on servers in memory. It tries all orders of their messages that
// differ from the plain order by a limited number of deviations. A violation fails the test, with a trace. If the
// exploration does not end within Options.Budget, the test is skipped with a message. Explore needs no real server,
// and checks only the client side of the lock. With -short it allows one deviation.
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
	if _, missing := os.Stat(orders.File); missing == nil { // the file is missing if the lock has killed its process
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

// bounds returns Config.Options or, if that is nil, the defaults. The defaults are smaller for several sites, which
// have many more orders of messages.
func (s *suite) bounds() explore.Options {
	o := explore.Defaults
	if s.topology.Sites > 1 {
		o.Sites, o.Visits, o.Deviations = 3, 1, 1
	}
	if s.Options != nil {
		o = *s.Options
	}
	o.Jobs = max(o.Jobs, 1) // parallel schedules would share the package variables of a lock
	if testing.Short() {
		o.Deviations = min(o.Deviations, 1)
	}
	return o
}
