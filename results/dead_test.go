package results

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFoldersOfDeadRunsAreRemoved leaves a folder as a killed process does, one on purpose and one that is being written:
// the next run removes the first.
func TestFoldersOfDeadRunsAreRemoved(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a [b]\n c")
	open := func(name string) *Folder {
		f, err := OpenFolder(out, name)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	dead, left, live := open("dead"), open("left"), open("live")
	// The lock of a killed process is released, and its file stays.
	if err := errors.Join(dead.lock.Close(), dead.file.Close(), left.Leave()); err != nil {
		t.Fatal(err)
	}
	next := open("next")
	for name, want := range map[string]bool{"dead": false, "left": true, "live": true, "next": true} {
		if _, err := os.Stat(filepath.Join(out, name+unfinished)); (err == nil) != want {
			t.Errorf("%s: is there: %v, want %v", name, err == nil, want)
		}
	}
	if err := errors.Join(live.Discard(), next.Discard()); err != nil {
		t.Error(err)
	}
	if _, err := live.Commit(&Run{}); err == nil {
		t.Error("a discarded run was saved")
	}
}
