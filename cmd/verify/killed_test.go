package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hammerlock/internal/live"
)

// TestKilledFleetsLeaveNothing kills the coordinator of a run with agents at a random moment. In half of the runs, it
// first kills an agent, a worker process or the server. Afterwards no process and no directory is left. For two
// hundred kills: -run KilledFleets -count 10.
func TestKilledFleetsLeaveNothing(t *testing.T) {
	t.Parallel()
	kills := 20
	if testing.Short() {
		kills = 2
	}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]int{}
	var dir, mark string
	defer func() {
		if t.Failed() {
			t.Logf("left are processes %v and files %q", marked(mark), leftIn(dir))
		}
	}()
	for i := range kills {
		dir = t.TempDir()
		mark = fmt.Sprintf("HAMMERLOCK_TEST_KILLED=%d.%d", seed, i)
		killed := killFleet(t, r, dir, mark)
		for _, name := range killed {
			seen[name]++
		}
		live.Wait(t, fmt.Sprintf("nothing left of run %d, seed %d, killed %q", i, seed, killed), func() bool {
			return len(marked(mark))+len(leftIn(dir)) == 0
		})
	}
	if t.Logf("killed: %v", seen); !testing.Short() && len(seen) < 3 {
		t.Error("these are too few kinds of processes")
	}
}

// killFleet starts a run and kills some of its processes, and the coordinator at last.
func killFleet(t *testing.T, r *rand.Rand, dir, mark string) (killed []string) {
	t.Helper()
	cmd := exec.Command("verify", "--topology", "single", "--lock", "lease", "--agents", "local:2", "--fault", "none",
		"--duration", "10m", "--workers", "4",
		"--out", filepath.Join(t.TempDir(), "runs"))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, time.Duration(r.Int64N(int64(2*time.Second))))
	if all := marked(mark); r.IntN(2) == 0 && len(all) > 0 {
		pids := make([]int, 0, len(all))
		for pid, name := range all {
			// Do not kill a shell, because it cleans up. A process that the coordinator has started has the
			// coordinator's name until its exec, so do not kill it, either.
			if name != "sh" && (name != "verify --topology" || pid == cmd.Process.Pid) {
				pids = append(pids, pid)
			}
		}
		slices.Sort(pids)
		pid := pids[r.IntN(len(pids))]
		killed = append(killed, all[pid])
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		wait(t, time.Duration(r.Int64N(int64(time.Second))))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return append(killed, "coordinator")
}

// marked are the processes that have a variable in their environment, and how they were started.
func marked(mark string) map[int]string {
	all := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark+"\x00")) {
			continue // it has ended, or belongs to somebody else
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		words := bytes.SplitN(line, []byte{0}, 3)
		all[pid] = filepath.Base(string(words[0]))
		if len(words) > 2 && all[pid] == "verify" {
			all[pid] += " " + string(words[1])
		}
	}
	return all
}

func leftIn(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return nil
	})
	return names
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
