package hammerlock_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hammerlock/explore"
	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/scenarios"
)

var (
	mutantsOf     = flag.String("mutants", "", "locks whose mutants are run, separated by commas, or all: make mutants")
	mutantsStage  = flag.String("mutants-stage", "both", "who is asked: explore, or both: the scenarios about those that explore does not find")
	mutantsFor    = flag.Duration("mutants-for", 3*time.Hour, "how long; what is not done by then is done by the next run")
	mutantsJobs   = flag.Int("mutants-jobs", 1, "how many mutants are run at the same time")
	mutantsSample = flag.Int("mutants-sample", 0, "how many mutants, drawn at random, the scenarios are asked about even if explore has found them")
	mutantsAgain  = flag.Bool("mutants-again", false, "ask again about those that nobody has found")
)

// mutantsFile keeps what is known of each mutant, a line each. make mutants goes on from it.
const mutantsFile = "testdata/mutants.jsonl"

// mutantResult is what is known of a mutant. Its source tells those of another day from today's.
type mutantResult struct {
	Lock      string `json:"lock"`
	Source    string `json:"source"`
	File      string `json:"file"`
	Line      int    `json:"line"`
	Before    string `json:"before"`
	After     string `json:"after"`
	Explore   *asked `json:"explore,omitempty"`
	Scenarios *asked `json:"scenarios,omitempty"` // all scenarios but explore
}

// asked is an answer.
type asked struct {
	Outcome string  `json:"outcome"`
	How     string  `json:"how,omitempty"` // the verdict that killed it, or how the run broke
	Seconds float64 `json:"seconds"`       // explore: of CPU time
	Day     string  `json:"day"`
}

// The outcomes of mutants.
const (
	mutantKilled    = "killed"
	mutantBroke     = "broke" // the run could not be carried out: nobody could have overlooked it
	mutantSurvived  = "survived"
	mutantUndecided = "undecided" // inconclusive: it was not accused
)

// noticed tells whether somebody would have been told that something is wrong.
func (a *asked) noticed() bool {
	return a != nil && (a.Outcome == mutantKilled || a.Outcome == mutantBroke)
}

func (r *mutantResult) noticed() bool { return r.Explore.noticed() || r.Scenarios.noticed() }

// mutantLimit is how long a run may take for one mutant; explore and the scenarios have their own budgets.
const mutantLimit = 3 * time.Minute

// TestMutantsOfLocks changes right locks one place at a time and asks verify, as anybody would, what it thinks of them: first
// explore, which takes seconds and no server, then the scenarios about what is left.
func TestMutantsOfLocks(t *testing.T) {
	if *mutantsOf == "" {
		t.Skip("make mutants")
	}
	m := &mutantRun{t: t, verify: filepath.Join(t.TempDir(), "verify"), file: mutantsFile, known: readLines[mutantResult](t, mutantsFile)}
	all := slices.DeleteFunc(mutantsOfLocks(t), func(x mutant) bool { return !chosen(x.lock) })
	if len(all) == 0 {
		t.Skip("no mutants of a lock in the catalogue were asked for")
	}
	begun := time.Now()
	all = buildMutants(t, all, m.verify)
	m.settle(all, m.known)
	m.ask(all, begun)
	t.Log("\n" + mutantScore(m.known))
}

// chosen tells whether a lock's mutants are asked for.
func chosen(lock string) bool {
	return *mutantsOf == "all" || slices.Contains(strings.Split(*mutantsOf, ","), lock)
}

// ask asks explore, then the scenarios about what is left, and about a sample of the rest.
func (m *mutantRun) ask(all []mutant, begun time.Time) {
	m.each(all, begun, func(_ mutant, r *mutantResult) bool { return r.Explore == nil }, func(x mutant, r *mutantResult) { r.Explore = m.explore(x) })
	if *mutantsStage != "both" {
		return
	}
	strain := func(x mutant, r *mutantResult) { r.Scenarios = m.scenarios(x) }
	for _, class := range []string{"", hole, byDesign} { // what nobody can tell from the lock is not asked about
		m.each(all, begun, func(_ mutant, r *mutantResult) bool {
			is, _ := r.class()
			return is == class && !r.Explore.noticed() && r.Scenarios == nil
		}, strain)
	}
	sample := slices.Clone(all)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(sample), func(i, j int) { sample[i], sample[j] = sample[j], sample[i] })
	m.each(sample[:min(*mutantsSample, len(sample))], begun, func(_ mutant, r *mutantResult) bool { return r.Scenarios == nil }, strain)
}

// mutantRun is one go at the mutants.
type mutantRun struct {
	t      *testing.T
	verify string // the program that has them
	file   string // where answers are kept

	mu    sync.Mutex
	known []*mutantResult
}

// settle makes known what there is. Others keeps what is not asked about now; mutants of sources that have changed are new.
func (m *mutantRun) settle(all []mutant, others []*mutantResult) {
	old := m.known
	m.known = slices.DeleteFunc(slices.Clone(others), func(r *mutantResult) bool { return chosen(r.Lock) })
	for _, x := range all {
		r := &mutantResult{Lock: x.lock, Source: x.source, File: x.file, Line: x.line, Before: x.before, After: x.after}
		if i := slices.IndexFunc(old, func(o *mutantResult) bool { return o.same(r) }); i >= 0 {
			r.Explore, r.Scenarios = old[i].Explore, old[i].Scenarios
			if *mutantsAgain && !r.noticed() {
				r.Explore, r.Scenarios = nil, nil
			}
		}
		m.known = append(m.known, r)
	}
}

func (r *mutantResult) same(o *mutantResult) bool {
	return r.Lock == o.Lock && r.Source == o.Source && r.File == o.File && r.Before == o.Before && r.After == o.After
}

// sourcesOf is a digest of files.
func sourcesOf(t *testing.T, files []string) string {
	t.Helper()
	var texts [][]byte
	for _, file := range files {
		texts = append(texts, sourceOf(t, file))
	}
	return digest(texts...)
}

func digest(texts ...[]byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(bytes.Join(texts, nil)))[:8]
}

// each asks about those mutants that need it, while there is time, and writes down each answer at once.
func (m *mutantRun) each(all []mutant, begun time.Time, needs func(mutant, *mutantResult) bool, ask func(mutant, *mutantResult)) {
	var wg sync.WaitGroup
	queue := make(chan mutant)
	for range *mutantsJobs {
		wg.Go(func() {
			for x := range queue {
				m.mu.Lock()
				at := slices.IndexFunc(m.known, func(r *mutantResult) bool {
					return r.Lock == x.lock && r.File == x.file && r.Before == x.before && r.After == x.after
				})
				r := *m.known[at]
				m.mu.Unlock()
				if !needs(x, &r) {
					continue
				}
				ask(x, &r)
				m.mu.Lock()
				m.known[at] = &r
				writeLines(m.t, m.file, m.known)
				m.mu.Unlock()
				last := r.Explore
				if r.Scenarios != nil {
					last = r.Scenarios
				}
				m.t.Logf("%s `%s` -> `%s`: %s %s, %.1f s", x.name, x.before, x.after, last.Outcome, last.How, last.Seconds)
			}
		})
	}
	for _, x := range all {
		if time.Since(begun) < *mutantsFor {
			queue <- x
		}
	}
	close(queue)
	wg.Wait()
}

// explore asks for what verify explores by default; the machine may be slow.
func (m *mutantRun) explore(x mutant) *asked {
	spec, ok := locks.Find(x.lock)
	if !ok && x.topology == "redlock" {
		spec.Sites = locks.ManySites
	}
	o := explore.Briefly(spec)
	var d struct {
		Exit     cli.Exit         `json:"exit"`
		Explored []explore.Report `json:"explored"`
	}
	args := []string{"explore", "--random=false", "--budget", "90s", "--deviations", fmt.Sprint(o.Deviations), "--sites", fmt.Sprint(o.Sites), "--visits", fmt.Sprint(o.Visits),
		"--clients", fmt.Sprint(o.Clients)}
	a, run := m.run(x, args, &d)
	if a.Outcome == "" {
		a.Outcome, a.How = outcomes[d.Exit.Code], fmt.Sprintf("%.160s", d.Exit.Reason)
	}
	if len(d.Explored) == 1 && d.Explored[0].Found != nil {
		a.How = d.Explored[0].Found.Checker + ": " + d.Explored[0].Found.Cause
	}
	a.Seconds = seconds(run.ProcessState.UserTime() + run.ProcessState.SystemTime())
	return a
}

// scenarios runs all scenarios but explore, until one fails.
func (m *mutantRun) scenarios(x mutant) *asked {
	var names []string
	for _, s := range scenarios.All {
		names = append(names, s.Name)
	}
	var d cli.Document
	begun := time.Now()
	a, _ := m.run(x, []string{"--topology", x.topology, "--seed", "1", "--fail-fast", "--scenario", strings.Join(names, ",")}, &d)
	if a.Outcome == "" {
		a.Outcome, a.How = outcomes[d.Exit.Code], fmt.Sprintf("%.160s", d.Exit.Reason)
	}
	a.Seconds = seconds(time.Since(begun))
	return a
}

// outcomes are what exit codes of verify say of a mutant.
var outcomes = map[int]string{cli.Violation: mutantKilled, cli.Passed: mutantSurvived, cli.Inconclusive: mutantUndecided, cli.Usage: mutantBroke, cli.Broken: mutantBroke}

func seconds(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// run runs verify about a mutant and reads its document. Without one the run broke.
func (m *mutantRun) run(x mutant, args []string, d any) (*asked, *exec.Cmd) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(m.t.Context(), mutantLimit)
	defer cancel()
	run := exec.CommandContext(ctx, m.verify, append(args, "--lock", x.name, "--json", "--quiet", "--out", dir)...)
	run.Cancel = func() error { return run.Process.Signal(os.Interrupt) }
	run.WaitDelay = 20 * time.Second
	var out, errs bytes.Buffer
	run.Stdout, run.Stderr = &out, &errs
	ended := run.Run()
	a := &asked{Day: time.Now().UTC().Format(time.DateOnly)}
	if err := json.Unmarshal(out.Bytes(), d); err != nil {
		a.Outcome, a.How = mutantBroke, fmt.Sprintf("%v: %.160s", ended, strings.Join(strings.Fields(errs.String()), " "))
	}
	return a, run
}

// readLines reads what is kept of one kind of thing, a line each.
func readLines[T any](t *testing.T, file string) (all []*T) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		r := new(T)
		if err := json.Unmarshal(line, r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// writeLines writes it down.
func writeLines[T any](t *testing.T, file string, all []*T) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var errs error
	for _, r := range all {
		errs = errors.Join(errs, e.Encode(r))
	}
	if err := errors.Join(errs, os.WriteFile(file+".new", b.Bytes(), 0o644), os.Rename(file+".new", file)); err != nil {
		t.Error(err)
	}
}
