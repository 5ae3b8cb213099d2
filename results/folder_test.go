package results

import (
	"os"
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
