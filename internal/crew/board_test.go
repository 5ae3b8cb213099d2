package crew

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestAFullDirectoryIsAnError: without room on the disk, making the board is an error. A process that writes to mapped
// memory without room would be killed.
func TestAFullDirectoryIsAnError(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("mount: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	b, err := makeBoard(4, 1<<16)
	if err == nil {
		t.Fatal("a board of several MiB was made in 64 KiB", b.close())
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir+" (TMPDIR)") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
