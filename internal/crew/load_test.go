package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWhatAGroupHas: a process group has the threads, open files, memory and CPU time of its processes, and of no
// others.
func TestWhatAGroupHas(t *testing.T) {
	proc := t.TempDir()
	for pid, group := range map[int]int{30: 30, 31: 30, 32: 99} {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		if err := os.MkdirAll(filepath.Join(dir, "fd", "0"), 0o700); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a (b) c) S 1 %d 0 0 0 0 0 0 0 0 7 1 0 0 20 0 4 0 0 0 3 0", pid, group)
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := usedBy(proc, 30), (use{threads: 8, files: 2, memory: 6 * int64(os.Getpagesize()),
		cpu: 16 * tick}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestPlacesOfGoroutines names the function in which the number of goroutines has grown.
func TestPlacesOfGoroutines(t *testing.T) {
	before, end := own{}.places(), make(chan struct{})
	defer close(end)
	for range 50 {
		go func() { <-end }()
	}
	most := grown(before, own{}.places())
	if len(most) == 0 || !strings.HasPrefix(most[0], "50 more in ") ||
		!strings.Contains(most[0], "TestPlacesOfGoroutines") {
		t.Errorf("%q", most)
	}
}

// TestFamilyIsTheWholeSuite: a worker process counts the CPU time of the whole suite: all processes that it has
// started, at any depth, even if they have ended. A shell that started the suite does not belong to it, nor do the
// shell's other children.
func TestFamilyIsTheWholeSuite(t *testing.T) {
	proc := t.TempDir()
	add := func(pid, parent int, program string, user, ended int) {
		dir := filepath.Join(proc, strconv.Itoa(pid))
		stat := fmt.Sprintf("%d (a (b) c) S %d 0 0 0 0 0 0 0 0 0 %d 1 %d 0 20 0", pid, parent, user, ended)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(dir, "exe")); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 0, "/init", 7000, 0)
	add(20, 1, "/bin/sh", 500, 0)
	add(21, 20, "/bin/loop", 9000, 0)
	add(30, 20, "/bin/bench", 100, 10)
	add(31, 30, "/bin/bench", 200, 0)
	add(32, 30, "/bin/redis-server", 30, 0)
	add(33, 31, "/bin/python", 2, 4)
	for _, pid := range []int{30, 31} {
		if got, want := family(proc, pid), (100+10+200+30+2+4+4)*10*time.Millisecond; got != want {
			t.Errorf("of %d: got %v, want %v", pid, got, want)
		}
	}
	if got := family(t.TempDir(), 30); got != 0 {
		t.Errorf("without processes: %v", got)
	}
}
