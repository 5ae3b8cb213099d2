package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

var (
	soakFor   = flag.Duration("soak", 0, "run right locks for this long, with faults, under load and with pauses of the suite")
	soakLocks = flag.String("soak-locks", "", "locks of the soak, separated by commas; empty = all that are right")
	soakSeed  = flag.Uint64("soak-seed", 1, "the first seed of the soak")
	soakShort = flag.Duration("soak-duration", 0, "duration of each run of the soak; 0 = the default of verify")
)

// soaked is what became of the runs of a lock on a topology.
type soaked struct {
	topology, lock string
	runs, bad      [3]int // by the state of the machine
	twice          [3]int // runs that needed another attempt
	exits          map[int]int
}

// The states of the machine during a run.
const (
	quiet = iota
	hogged
	paused
)

var states = [...]string{"quiet", "CPU hog", "SIGSTOP"}

// TestSoak runs right locks with --fault auto until the time is over: a third of the runs beside busy loops, and every
// seventh is stopped for a while, alone or with its servers. No lock may be accused, and no run may break.
func TestSoak(t *testing.T) {
	if *soakFor == 0 {
		t.Skip("make soak")
	}
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin", "soak"))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "verify")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := rightLocks()
	if *soakLocks != "" {
		all = slices.DeleteFunc(all, func(s *soaked) bool { return !slices.Contains(strings.Split(*soakLocks, ","), s.lock) })
	}
	if len(all) == 0 {
		t.Fatalf("-soak-locks %s: none of them is right", *soakLocks)
	}
	reasons, broken := []string(nil), false
	r := rand.New(rand.NewPCG(*soakSeed, 0))
	for n, end := 0, time.Now().Add(*soakFor); time.Now().Before(end) && !broken; n++ {
		if n%len(all) == 0 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		s, state := all[n%len(all)], quiet
		switch {
		case n%7 == 3:
			state = paused
		case n%3 == 1:
			state = hogged
		}
		exit, attempts, saved := soak(t, program, dir, s, *soakSeed+uint64(n), state, r)
		if attempts > 1 {
			s.twice[state]++
		}
		s.exits[exit.Code]++
		if s.runs[state]++; exit.Code == cli.Passed {
			if err := os.RemoveAll(saved); err != nil {
				t.Error(err)
			}
			continue
		}
		s.bad[state]++
		reasons = append(reasons, fmt.Sprintf("%s %s, seed %d, %s: exit %d: %s\n    %s", s.topology, s.lock, *soakSeed+uint64(n),
			states[state], exit.Code, exit.Reason, saved))
		t.Log(reasons[len(reasons)-1])
		broken = exit.Code == cli.Violation
	}
	t.Log("\n" + soakTable(all) + strings.Join(reasons, "\n"))
	for _, s := range all {
		if s.exits[cli.Violation]+s.exits[cli.Broken]+s.exits[cli.Usage] > 0 {
			t.Errorf("%s %s: exit codes %v", s.topology, s.lock, s.exits)
		}
	}
}

// rightLocks lists every right lock on every topology that it fits. Left out are locks that need no server, and those with
// commands that the usual server does not have.
func rightLocks() (all []*soaked) {
	for _, topology := range topologies.All {
		for _, l := range known.Locks {
			if l.Broken != "" || l.Sites == locks.NoSite || !l.Sites.Fits(topology.Sites) || len(l.Needs) > 0 {
				continue
			}
			all = append(all, &soaked{topology: topology.Name, lock: l.Name, exits: map[int]int{}})
		}
	}
	return all
}

// soak carries out one run. It returns how it ended, after how many attempts, and where it was saved.
func soak(t *testing.T, program, dir string, s *soaked, seed uint64, state int, r *rand.Rand) (_ cli.Exit, attempts int, _ string) {
	args := []string{"--topology", s.topology, "--lock", s.lock, "--fault", "auto", "--seed", strconv.FormatUint(seed, 10),
		"--json", "--quiet", "--out", filepath.Join(dir, strconv.FormatUint(seed, 10))}
	if *soakShort > 0 {
		args = append(args, "--duration", soakShort.String())
	}
	if state == hogged {
		for range 2 {
			hog := exec.Command("sh", "-c", "while :; do :; done")
			if err := hog.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
		}
	}
	run := exec.Command(program, args...)
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	if state == paused {
		after, most := time.Duration(2+r.IntN(12))*time.Second, 500+r.IntN(5000)
		pause(run.Process.Pid, r.IntN(2) == 0, after, time.Duration(most)*time.Millisecond, ended)
	}
	err := <-ended
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	var d cli.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.Exit.Code != run.ProcessState.ExitCode() {
		return cli.Exit{Code: cli.Broken, Reason: fmt.Sprintf("%v: %v\n%s", run.ProcessState, err, errs.String())}, 1, args[len(args)-1]
	}
	for _, r := range d.Runs {
		attempts = 1 + len(r.Before)
	}
	return d.Exit, attempts, filepath.Join(dir, strconv.FormatUint(seed, 10))
}

// pause stops a process for a while, with those that it started if everybody is to stand still.
func pause(pid int, everybody bool, after, length time.Duration, ended chan error) {
	select {
	case err := <-ended:
		ended <- err
		return
	case <-time.After(after):
	}
	list := []int{pid}
	if everybody {
		list = append(list, descendants(pid)...)
	}
	for _, p := range list {
		_ = syscall.Kill(p, syscall.SIGSTOP) // one may have ended meanwhile
	}
	<-time.After(length)
	for _, p := range slices.Backward(list) {
		_ = syscall.Kill(p, syscall.SIGCONT)
	}
}

// descendants lists the processes that one has started, and those that these have started.
func descendants(pid int) (all []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

func soakTable(all []*soaked) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "topology\tlock\truns\tpass\tFAIL\tinconclusive\texit 4\tother\t")
	sum := soaked{topology: "all", exits: map[int]int{}}
	row := func(s *soaked) {
		runs := s.runs[quiet] + s.runs[hogged] + s.runs[paused]
		known := s.exits[cli.Passed] + s.exits[cli.Violation] + s.exits[cli.Inconclusive] + s.exits[cli.Broken]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", s.topology, s.lock, runs, s.exits[cli.Passed], s.exits[cli.Violation],
			s.exits[cli.Inconclusive], s.exits[cli.Broken], runs-known)
	}
	slices.SortFunc(all, func(a, b *soaked) int { return strings.Compare(a.topology+" "+a.lock, b.topology+" "+b.lock) })
	for _, s := range all {
		row(s)
		for i := range s.runs {
			sum.runs[i] += s.runs[i]
			sum.bad[i] += s.bad[i]
			sum.twice[i] += s.twice[i]
		}
		for code, n := range s.exits {
			sum.exits[code] += n
		}
	}
	row(&sum)
	_ = w.Flush()
	for i, name := range states {
		_, _ = fmt.Fprintf(&b, "%s: %d runs, %d did not pass, %d had another attempt\n", name, sum.runs[i], sum.bad[i], sum.twice[i])
	}
	return b.String()
}
