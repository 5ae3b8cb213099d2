package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hogs starts two shell loops, each of which keeps one core busy. A loop also ends when the suite has died.
func (e Env) hogs() (end func()) {
	var all []*exec.Cmd
	for range 2 {
		hog := exec.Command("sh", "-c", "while kill -0 $PPID; do :; done")
		if err := hog.Start(); err != nil {
			e.complain(err)
			continue
		}
		all = append(all, hog)
	}
	return func() {
		for _, hog := range all {
			_, _ = hog.Process.Kill(), hog.Wait()
		}
	}
}

// stopped makes a shell stop the suite after 2 to 13 s (SIGSTOP), and continue it 0.5 to 5.5 s later. In half of the
// cases, the shell also stops all child processes of the suite.
func (e Env) stopped(r *rand.Rand) (end func()) {
	after, length := time.Duration(2+r.IntN(12))*time.Second, time.Duration(500+r.IntN(5000))*time.Millisecond
	everybody := r.IntN(2) == 0
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-over:
			return
		case <-time.After(after):
		}
		pids := []string{strconv.Itoa(os.Getpid())}
		if everybody {
			pids = append(pids, descendants(pids[0])...)
		}
		text := strings.Join(pids, " ")
		slices.Reverse(pids)
		e.complain(exec.Command("sh", "-c", fmt.Sprintf("kill -STOP %s; sleep %.3f; kill -CONT %s", text,
			length.Seconds(), strings.Join(pids, " "))).Run())
	}()
	return func() {
		close(over)
		<-ended
	}
}

// descendants returns the process ids of all children of a process, their children, and so on.
func descendants(pid string) (all []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%s/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for child := range strings.FieldsSeq(string(text)) {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}
