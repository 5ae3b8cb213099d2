package topologies

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// victimEnv makes the test binary a suite that will die.
const victimEnv = "HAMMERLOCK_TEST_VICTIM"

// victim starts a topology, prints its process numbers and its directory, and dies as it is told.
func victim() {
	ctx := context.Background()
	s, err := FindServer(ctx, "")
	if err != nil {
		panic(err)
	}
	var pids []string
	dir := "-"
	if os.Getenv(victimEnv) == "reaper only" {
		pids, dir = victimOfReaper()
	} else {
		top, err := sentinel.Up(ctx, Options{Server: s})
		if err != nil {
			panic(err)
		}
		for _, n := range top.Nodes {
			pids = append(pids, strconv.Itoa(n.child.PID()))
		}
		dir = top.dir
		if err := top.Nodes[1].Pause(); err != nil {
			panic(err)
		}
	}
	fmt.Println(dir, strings.Join(pids, " "))
	if os.Getenv(victimEnv) == "panic" {
		panic("as the test asked for")
	}
	<-ctx.Done()
}

// victimOfReaper starts a process without a parent-death signal, as on systems other than Linux.
func victimOfReaper() (pids []string, dir string) {
	dir, err := nameDir()
	if err != nil {
		panic(err)
	}
	r, err := startReaper(dir)
	if err = errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		panic(err)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	r.Watch(cmd.Process.Pid)
	return []string{strconv.Itoa(cmd.Process.Pid)}, dir
}

func TestNothingSurvivesTheSuite(t *testing.T) {
	for _, death := range []string{"SIGKILL", "SIGTERM", "panic", "reaper only"} {
		t.Run(death, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), victimEnv+"="+death)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(line)
			switch death {
			case "SIGTERM":
				err = cmd.Process.Signal(syscall.SIGTERM)
			case "panic":
			default:
				err = cmd.Process.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed on purpose
			mustVanish(t, words[0], words[1:])
		})
	}
}

func mustVanish(t *testing.T, dir string, pids []string) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("the victim started nothing")
	}
	succeeds(t, "the end of what the victim has started", func() error {
		for _, text := range pids {
			pid, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			if !ended(pid) {
				return fmt.Errorf("process %d is alive", pid)
			}
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("directory %s is left: %v", dir, err)
		}
		return nil
	})
}

// ended tells whether a process has ended; its parent may not have noticed yet.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestReaperRemovesOnlyOurDirectories(t *testing.T) {
	t.Parallel()
	keep := t.TempDir() // its name does not begin with tempPrefix
	r, err := startReaper(keep)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("the reaper removed a directory that is not ours: %v", err)
	}
}
