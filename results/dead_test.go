package results

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFoldersOfDeadRunsAreRemoved: the next run deletes the directory of a killed process. It keeps a directory that
// was left on purpose, and one that another process is writing.
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

// TestHistoriesOfKilledRunsAreKept: the histories of killed processes stay, and each is reported once. If they are
// larger than a limit together, the oldest is deleted.
func TestHistoriesOfKilledRunsAreKept(t *testing.T) {
	out := t.TempDir()
	kill := func(name string) string {
		f, err := OpenFolder(out, name)
		if err != nil {
			t.Fatal(err)
		}
		recorded := f.Path("recorder") // of a watch
		err = errors.Join(os.WriteFile(f.Path(HistoryFile), []byte("01234"), 0o644), os.Mkdir(recorded, 0o755),
			os.WriteFile(filepath.Join(recorded, "0"), []byte("56789"), 0o644))
		if err = errors.Join(err, f.lock.Close(), f.file.Close()); err != nil {
			t.Fatal(err)
		}
		return f.temp
	}
	first := kill("1")
	var f Folder
	if err := f.removeDead(out, MostKilled); err != nil || !slices.Equal(f.Killed, []string{first}) {
		t.Errorf("found %v, %v, want %v", f.Killed, err, first)
	}
	second := kill("2")
	f = Folder{}
	if err := f.removeDead(out, 15); err != nil || !slices.Equal(f.Killed, []string{second}) {
		t.Errorf("found %v, %v, want %v", f.Killed, err, second)
	}
	for dir, want := range map[string]bool{first: false, second: true} {
		if _, err := os.Stat(filepath.Join(dir, HistoryFile)); (err == nil) != want {
			t.Errorf("%s has its history: %v, want %v", dir, err == nil, want)
		}
	}
}
