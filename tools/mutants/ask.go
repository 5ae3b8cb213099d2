package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"hammerlock/explore"
	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/scenarios"
	"hammerlock/tools/kept"
)

// perMutant limits the time for the run of a mutant. The commands that are run have limits of their own.
const perMutant = 3 * time.Minute

// asking is one execution of the command mutants.
type asking struct {
	options
	made   kept.Made
	begun  time.Time
	verify string // path of the program verify with all mutants
	file   string // file in which the answers are saved

	mu    sync.Mutex
	known []*kept.Mutant
}

func (m *asking) open(file string) (err error) {
	m.file, m.begun = file, time.Now()
	m.known, err = kept.ReadLines[kept.Mutant](file)
	return err
}

// settle makes a result for each current mutant from the results that are known. Answers of runs are kept only if
// the source of the lock has not changed. The judgement of a person is kept in any case. The results in others are
// for other mutants and stay as they are.
func (m *asking) settle(all []mutant, others []*kept.Mutant) {
	old := m.known
	m.known = others
	for _, x := range all {
		r := &kept.Mutant{Lock: x.lock, Source: x.source, File: x.file, Line: x.line, Before: x.before, After: x.after}
		if i := slices.IndexFunc(old, r.Judged); i >= 0 {
			r.Class, r.Why = old[i].Class, old[i].Why
		}
		if i := slices.IndexFunc(old, r.Same); i >= 0 {
			r.Explore, r.Scenarios = old[i].Explore, old[i].Scenarios
			if m.again && !r.Noticed() {
				r.Explore, r.Scenarios = nil, nil
			}
		}
		m.known = append(m.known, r)
	}
}

// ask runs "verify explore" for each mutant that has no answer yet. Then it runs the scenarios for the mutants that
// explore missed, and for a random sample of all mutants.
func (m *asking) ask(ctx context.Context, all []mutant) error {
	err := m.each(all, func(r *kept.Mutant) bool { return r.Explore == nil }, func(x mutant, r *kept.Mutant) {
		r.Explore = m.explore(ctx, x)
	})
	if m.stage != "both" {
		return err
	}
	strain := func(x mutant, r *kept.Mutant) { r.Scenarios = m.scenarios(ctx, x) }
	// Mutants that a person has judged equivalent are left out.
	for _, class := range []string{"", kept.Hole, kept.ByDesign} {
		err = errors.Join(err, m.each(all, func(r *kept.Mutant) bool {
			return r.Class == class && !r.Explore.Noticed() && r.Scenarios == nil
		}, strain))
	}
	sample := slices.Clone(all)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(sample), func(i, j int) { sample[i], sample[j] = sample[j], sample[i] })
	return errors.Join(err, m.each(sample[:min(m.sample, len(sample))],
		func(r *kept.Mutant) bool { return r.Scenarios == nil }, strain))
}

// each calls ask for the mutants for which needs returns true. It saves each answer immediately. After the time
// limit it makes no more calls.
func (m *asking) each(all []mutant, needs func(*kept.Mutant) bool, ask func(mutant, *kept.Mutant)) (failed error) {
	var wg sync.WaitGroup
	queue := make(chan mutant)
	for range m.jobs {
		wg.Go(func() {
			for x := range queue {
				m.mu.Lock()
				at := slices.IndexFunc(m.known, func(r *kept.Mutant) bool {
					return r.Lock == x.lock && r.File == x.file && r.Before == x.before && r.After == x.after
				})
				r := *m.known[at]
				m.mu.Unlock()
				if !needs(&r) {
					continue
				}
				ask(x, &r)
				last := r.Explore
				if r.Scenarios != nil {
					last = r.Scenarios
				}
				fmt.Printf("%s `%s` -> `%s`: %s %s, %.1f s\n", x.name, x.before, x.after, last.Outcome, last.How,
					last.Seconds)
				m.mu.Lock()
				m.known[at] = &r
				failed = errors.Join(failed, kept.WriteLines(m.file, m.known))
				m.mu.Unlock()
			}
		})
	}
	for _, x := range all {
		if time.Since(m.begun) < m.limit {
			queue <- x
		}
	}
	close(queue)
	wg.Wait()
	return failed
}

// explore runs "verify explore" with its default limits, except that a slow machine gets more time.
func (m *asking) explore(ctx context.Context, x mutant) *kept.Answer {
	spec, ok := catalogue.Find(x.lock)
	if !ok && x.topology == "redlock" {
		spec.Sites = locks.ManySites
	}
	o := explore.Briefly(spec)
	var d struct {
		Exit     cli.Exit         `json:"exit"`
		Explored []explore.Report `json:"explored"`
	}
	state, err := m.run(ctx, x, &d, "explore", "--random=false", "--budget", "90s", "--deviations",
		fmt.Sprint(o.Deviations),
		"--sites", fmt.Sprint(o.Sites), "--visits", fmt.Sprint(o.Visits), "--clients", fmt.Sprint(o.Clients))
	a := m.answer(d.Exit, err)
	if len(d.Explored) == 1 && d.Explored[0].Found != nil {
		a.How = d.Explored[0].Found.Checker + ": " + d.Explored[0].Found.Cause
	}
	if state != nil {
		a.Seconds = seconds(state.UserTime() + state.SystemTime())
	}
	return a
}

// scenarios runs verify with all scenarios, but without explore. It stops at the first failure.
func (m *asking) scenarios(ctx context.Context, x mutant) *kept.Answer {
	var names []string
	for _, s := range scenarios.All {
		names = append(names, s.Name)
	}
	return m.strain(ctx, x, "--topology", x.topology, "--seed", "1", "--fail-fast", "--scenario",
		strings.Join(names, ","))
}

// strain runs verify with real servers, and returns the answer.
func (m *asking) strain(ctx context.Context, x mutant, args ...string) *kept.Answer {
	var d cli.Document
	begun := time.Now()
	_, err := m.run(ctx, x, &d, args...)
	a := m.answer(d.Exit, err)
	a.Seconds = seconds(time.Since(begun))
	return a
}

// outcomes maps exit codes of verify to outcomes.
var outcomes = map[int]string{cli.Violation: kept.Killed, cli.Passed: kept.Survived, cli.Inconclusive: kept.Undecided,
	cli.Usage: kept.Broke, cli.Broken: kept.Broke}

// answer makes an answer of the exit code of a run. If the run printed no result, the outcome is Broke.
func (m *asking) answer(exit cli.Exit, err error) *kept.Answer {
	a := &kept.Answer{Outcome: outcomes[exit.Code], How: fmt.Sprintf("%.160s", exit.Reason), Made: m.made}
	if err != nil {
		a.Outcome, a.How = kept.Broke, fmt.Sprintf("%.160v", err)
	}
	return a
}

func seconds(d time.Duration) float64 { return math.Round(10*d.Seconds()) / 10 }

func (m *asking) run(ctx context.Context, x mutant, document any, args ...string) (*os.ProcessState, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, perMutant)
	defer cancel()
	return kept.Ask(ctx, m.verify, append(args, "--lock", x.name, "--out", dir), document)
}
