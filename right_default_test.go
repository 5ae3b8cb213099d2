package hammerlock_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

var (
	rightSeed = flag.Uint64("right", 0, "ask the default verify about every right lock on every topology, with this seed: make right")
	rightJobs = flag.Int("right-jobs", 1, "how many of them at the same time")
)

// rightFile keeps what the default verify says of right locks, a line for each lock, topology and seed.
const rightFile = "testdata/right.jsonl"

// rightRun is what became of one run of the default verify.
type rightRun struct {
	Lock         string   `json:"lock"`
	Topology     string   `json:"topology"`
	Seed         uint64   `json:"seed"`
	Exit         int      `json:"exit"`
	Passed       int      `json:"passed"`
	Inconclusive []string `json:"inconclusive,omitempty"` // names of scenarios
	Failed       []string `json:"failed,omitempty"`
	NotRun       int      `json:"not_run"`
	Seconds      float64  `json:"seconds"`
	Load         string   `json:"load"` // average of the last minute, when it was over
	Day          string   `json:"day"`
}

func (r *rightRun) of(lock, topology string) bool { return r.Lock == lock && r.Topology == topology }

// rightLocks lists the right locks of the catalogue, each with the topologies that it fits.
func rightLocks() (all []*rightRun) {
	for _, l := range known.Locks {
		for _, s := range topologies.All {
			if l.Broken == "" && l.Sites != locks.NoSite && l.Sites.Fits(s.Sites) && len(l.Needs) == 0 {
				all = append(all, &rightRun{Lock: l.Name, Topology: s.Name})
			}
		}
	}
	return all
}

// TestRightByDefault asks the default verify about the right locks of the catalogue. What is known of a seed is not asked again.
func TestRightByDefault(t *testing.T) {
	if *rightSeed == 0 {
		t.Skip("make right")
	}
	verify := filepath.Join(t.TempDir(), "verify")
	if out, err := exec.Command("go", "build", "-o", verify, "./cmd/verify").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := &mutantRun{t: t, verify: verify}
	queue, done := make(chan *rightRun), make(chan *rightRun)
	for range *rightJobs {
		go func() {
			for r := range queue {
				m.right(r)
				done <- r
			}
		}()
	}
	kept := readLines[rightRun](t, rightFile)
	todo := slices.DeleteFunc(rightLocks(), func(r *rightRun) bool {
		return slices.ContainsFunc(kept, func(k *rightRun) bool { return k.of(r.Lock, r.Topology) && k.Seed == *rightSeed })
	})
	go func() {
		defer close(queue)
		for _, r := range todo {
			r.Seed = *rightSeed
			queue <- r
		}
	}()
	for range todo {
		r := <-done
		t.Logf("%+v", *r)
		switch r.Exit {
		case cli.Violation:
			t.Errorf("%s on %s with seed %d is accused", r.Lock, r.Topology, r.Seed)
		case cli.Passed, cli.Inconclusive:
		default:
			t.Errorf("%s on %s: exit %d", r.Lock, r.Topology, r.Exit)
			continue // it is asked again
		}
		kept = append(kept, r)
		slices.SortStableFunc(kept, func(a, b *rightRun) int {
			return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Topology, b.Topology))
		})
		writeLines(t, rightFile, kept)
	}
}

// right asks the default verify about a lock.
func (m *mutantRun) right(r *rightRun) {
	var d cli.Document
	begun := time.Now()
	a, run := m.run(mutant{name: r.Lock}, []string{"--topology", r.Topology, "--seed", fmt.Sprint(r.Seed)}, &d)
	r.Seconds, r.Day, r.Exit, r.NotRun = seconds(time.Since(begun)), a.Day, run.ProcessState.ExitCode(), len(d.NotRun)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		r.Load, _, _ = strings.Cut(string(load), " ")
	}
	all := d.Explored
	for i := range d.Runs {
		all = append(all, d.Runs[i].Judgement())
	}
	for _, j := range all {
		switch status, _ := j.Status(); status {
		case checker.Pass:
			r.Passed++
		case checker.Fail:
			r.Failed = append(r.Failed, j.Scenario)
		default:
			r.Inconclusive = append(r.Inconclusive, j.Scenario)
		}
	}
}

// rightTable says lock by lock what the default verify came to, and what it came to in all.
func rightTable(all []*rightRun) string {
	var b strings.Builder
	b.WriteString("| lock |")
	for _, s := range topologies.All {
		fmt.Fprintf(&b, " %s |", s.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(topologies.All)) + "\n")
	for _, l := range known.Locks {
		if !slices.ContainsFunc(all, func(r *rightRun) bool { return r.Lock == l.Name }) {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", l.Name)
		for _, s := range topologies.All {
			fmt.Fprintf(&b, " %s |", rightCell(slices.DeleteFunc(slices.Clone(all), func(r *rightRun) bool { return !r.of(l.Name, s.Name) })))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n" + rightSum(all)
}

// rightCell is what the runs of a lock on a topology came to.
func rightCell(runs []*rightRun) string {
	passed, names := 0, map[string]int{}
	for _, r := range runs {
		passed += r.Passed
		for _, name := range r.Failed {
			names["**FAIL** "+name]++
		}
		for _, name := range r.Inconclusive {
			names[name+"?"]++
		}
	}
	var words []string
	for name, n := range names {
		if n > 1 {
			name += fmt.Sprintf(" ×%d", n)
		}
		words = append(words, name)
	}
	slices.Sort(words)
	if passed > 0 {
		words = slices.Insert(words, 0, fmt.Sprintf("pass ×%d", passed))
	}
	return strings.Join(words, "<br>")
}

// rightSum counts, seed by seed.
func rightSum(all []*rightRun) string {
	var b strings.Builder
	b.WriteString("| seed | runs | scenarios that passed | inconclusive | FAIL | seconds a run, median | at most | load average, median |\n|---|---|---|---|---|---|---|---|\n")
	for len(all) > 0 {
		n := 0
		var passed, undecided, failed int
		var took []float64
		var loads []string
		for ; n < len(all) && all[n].Seed == all[0].Seed; n++ {
			r := all[n]
			passed, undecided, failed = passed+r.Passed, undecided+len(r.Inconclusive), failed+len(r.Failed)
			took, loads = append(took, r.Seconds), append(loads, fmt.Sprintf("%5s", r.Load))
		}
		slices.Sort(took)
		slices.Sort(loads)
		share := float64(undecided) / float64(max(passed+undecided+failed, 1))
		fmt.Fprintf(&b, "| %d | %d | %d | %d, %.1f %% | %d | %.0f | %.0f | %s |\n", all[0].Seed, len(took), passed, undecided, 100*share, failed,
			took[len(took)/2], took[len(took)-1], strings.TrimSpace(loads[len(loads)/2]))
		all = all[n:]
	}
	return b.String()
}
