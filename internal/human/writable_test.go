package human

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWritable: nothing is left behind, and a missing directory is an error.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	if err := Writable(dir); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := Writable(filepath.Join(dir, "nowhere")); err == nil || err.Error() != "no such file or directory" {
		t.Errorf("got %v", err)
	}
}

// TestAFullDiskIsNotWritable: on a full disk files can be created but not written.
func TestAFullDiskIsNotWritable(t *testing.T) {
	full := os.Getenv("HAMMERLOCK_FULL_DISK")
	if full == "" {
		t.Skip("HAMMERLOCK_FULL_DISK names a directory on a disk that is full")
	}
	if err := Writable(full); err == nil || err.Error() != "no space left on device" {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(full, ".hammerlock-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
