// Command soak runs right locks with --fault auto, or through all scenarios, until the time is over: a third of the
// runs beside busy loops, and every seventh is stopped for a while, alone or with its servers. No lock may be accused,
// and no run may break.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"hammerlock/internal/cli"
	"hammerlock/tools/kept"
)

// runs is where what did not pass stays.
const runs = "bin/soak"

// soaked is what became of the runs of a lock on a topology.
type soaked struct {
	kept.Pair
	runs, bad [3]int // by the state of the machine
	twice     [3]int // runs that needed another attempt
	exits     map[int]int
}

// The states of the machine during a run.
const (
	quiet = iota
	hogged
	paused
)

var states = [...]string{"quiet", "CPU hog", "SIGSTOP"}

func main() {
	length := flag.Duration("for", 90*time.Minute, "how long")
	only := flag.String("locks", "", "these locks alone, separated by commas; empty = all that are right")
	seed := flag.Uint64("seed", 1, "the first seed")
	each := flag.Duration("duration", 0, "of each run; 0 = the default of verify")
	scenarios := flag.Bool("scenarios", false, "all scenarios instead of --fault auto, as verify does by default")
	flag.Parse()
	under := []string{"--fault", "auto"}
	if *scenarios {
		under = nil
	}
	if *each > 0 {
		under = append(under, "--duration", each.String())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // ends when the run that goes on has ended
	defer stop()
	if err := soak(ctx, *length, *only, *seed, under); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func soak(ctx context.Context, length time.Duration, only string, seed uint64, under []string) error {
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	verify, err := kept.BuildVerify(ctx, dir)
	if err != nil {
		return err
	}
	var all []*soaked
	for _, p := range kept.RightPairs() {
		if only == "" || slices.Contains(strings.Split(only, ","), p.Lock) {
			all = append(all, &soaked{Pair: p, exits: map[int]int{}})
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("-locks %s: none of them is right", only)
	}
	var reasons []string
	failed := false
	r := rand.New(rand.NewPCG(seed, 0))
	for n, end := 0, time.Now().Add(length); time.Now().Before(end) && !failed && ctx.Err() == nil; n++ {
		if n%len(all) == 0 {
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		state := quiet
		switch {
		case n%7 == 3:
			state = paused
		case n%3 == 1:
			state = hogged
		}
		reason, accused, err := all[n%len(all)].run(verify, seed+uint64(n), state, under, r)
		if err != nil {
			return err
		}
		if reason != "" {
			reasons = append(reasons, reason)
			fmt.Println(reason)
		}
		failed = accused
	}
	fmt.Print("\n", table(all), strings.Join(reasons, "\n"), "\n")
	for _, s := range all {
		if s.exits[cli.Violation]+s.exits[cli.Broken]+s.exits[cli.Usage] > 0 {
			err = errors.Join(err, fmt.Errorf("%s %s: exit codes %v", s.Topology, s.Lock, s.exits))
		}
	}
	return err
}

// run carries out one run and counts it. It returns why it did not pass, and whether the lock was accused.
func (s *soaked) run(verify string, seed uint64, state int, under []string, r *rand.Rand) (reason string, accused bool,
	err error) {
	saved := filepath.Join(runs, strconv.FormatUint(seed, 10))
	exit, attempts, err := s.once(verify, saved, seed, state, under, r)
	if err != nil {
		return "", false, err
	}
	s.runs[state]++
	s.exits[exit.Code]++
	if attempts > 1 {
		s.twice[state]++
	}
	if exit.Code == cli.Passed {
		return "", false, os.RemoveAll(saved)
	}
	s.bad[state]++
	return fmt.Sprintf("%s %s, seed %d, %s: exit %d: %s\n    %s", s.Topology, s.Lock, seed, states[state], exit.Code,
			exit.Reason, saved),
		exit.Code == cli.Violation, nil
}

// once runs verify. It returns how it ended, and after how many attempts.
func (s *soaked) once(verify, saved string, seed uint64, state int, under []string, r *rand.Rand) (_ cli.Exit,
	attempts int, err error) {
	args := append([]string{"--topology", s.Topology, "--lock", s.Lock, "--seed", strconv.FormatUint(seed, 10),
		"--json", "--quiet", "--out", saved}, under...)
	if state == hogged {
		for range 2 {
			hog := exec.Command("sh", "-c", "while :; do :; done")
			if err := hog.Start(); err != nil {
				return cli.Exit{}, 0, err
			}
			defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
		}
	}
	run := exec.Command(verify, args...)
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	if err := run.Start(); err != nil {
		return cli.Exit{}, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	if state == paused {
		after, most := time.Duration(2+r.IntN(12))*time.Second, 500+r.IntN(5000)
		pause(run.Process.Pid, r.IntN(2) == 0, after, time.Duration(most)*time.Millisecond, ended)
	}
	err = <-ended
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return cli.Exit{}, 0, err
	}
	var d cli.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil || d.Exit.Code != run.ProcessState.ExitCode() {
		return cli.Exit{Code: cli.Broken, Reason: fmt.Sprintf("%v: %v\n%s", run.ProcessState, err, errs.String())}, 1,
			nil
	}
	for _, r := range d.Runs {
		attempts = max(attempts, 1+len(r.Before))
	}
	return d.Exit, attempts, nil
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

func table(all []*soaked) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "topology\tlock\truns\tpass\tFAIL\tinconclusive\texit 4\tother\t")
	sum := soaked{Pair: kept.Pair{Topology: "all"}, exits: map[int]int{}}
	row := func(s *soaked) {
		runs := s.runs[quiet] + s.runs[hogged] + s.runs[paused]
		known := s.exits[cli.Passed] + s.exits[cli.Violation] + s.exits[cli.Inconclusive] + s.exits[cli.Broken]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", s.Topology, s.Lock, runs, s.exits[cli.Passed],
			s.exits[cli.Violation],
			s.exits[cli.Inconclusive], s.exits[cli.Broken], runs-known)
	}
	slices.SortFunc(all, func(a, b *soaked) int {
		return strings.Compare(a.Topology+" "+a.Lock, b.Topology+" "+b.Lock)
	})
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
		_, _ = fmt.Fprintf(&b, "%s: %d runs, %d did not pass, %d had another attempt\n", name, sum.runs[i], sum.bad[i],
			sum.twice[i])
	}
	return b.String()
}
