package results

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAFinishedRunIsNotAbandoned: a second process opens the lock file of a run, and the run ends. Only then does
// the second process try to lock the file. It succeeds, but must not delete the run.
func TestAFinishedRunIsNotAbandoned(t *testing.T) {
	f, err := OpenFolder(t.TempDir(), "run")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(f.Path(writerFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if abandoned(lock) {
		t.Error("a run that goes on is abandoned")
	}
	if _, err := f.Commit(&Run{}); err != nil {
		t.Fatal(err)
	}
	if abandoned(lock) {
		t.Error("a finished run is abandoned")
	}
}

// TestAFolderThatCannotBeSavedSaysWhereItIs: the name depends on whether the directory already has its final name.
func TestAFolderThatCannotBeSavedSaysWhereItIs(t *testing.T) {
	for name, c := range map[string]struct{ inTheWay, want string }{
		"the record":      {"one" + unfinished + "/" + benchmarkFile, "/one" + unfinished},
		"the link to it":  {latestLink + "/file", "/one"},
		"the final place": {"one/file", "/one" + unfinished},
	} {
		out := t.TempDir()
		f, err := OpenFolder(out, "one")
		if err == nil {
			err = os.MkdirAll(filepath.Join(out, c.inTheWay), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.Commit(&Run{Name: "one"}); err == nil {
			t.Errorf("%s: it was saved", name)
		}
		if got := f.Left().Error(); got != "what was recorded is left in "+out+c.want {
			t.Errorf("%s: got %q, want %s%s", name, got, out, c.want)
		}
	}
}
