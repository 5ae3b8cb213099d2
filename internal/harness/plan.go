// Package harness makes a plan into runs: it brings topologies up, lets workers loose on locks, measures,
// judges and saves. It is the only place that knows everybody.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/locks"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Plan says what to run: every lock on every topology.
type Plan struct {
	Topologies []topologies.Spec
	Locks      []locks.Spec // the zero Spec stands for the lock that a topology is made for
	// Scenarios say what the locks are strained with, one run each; none = what the rest of the plan says.
	Scenarios   []scenarios.Scenario
	Workload    workload.Shape // but for End, which follows from the next two
	Warmup      time.Duration
	Duration    time.Duration
	Counter     workload.CounterSpec
	RedisServer string // a path; empty to look for one; topologies.EmbeddedName
	Profile     topologies.Profile
	Out         string
	Processes   int      // that the workers live in; 1 = in the suite itself
	Faults      []string // as faults.Parse reads them
	Verify      bool     // keep and judge every operation
	// LibraryRetries leaves the client library's own retries on, to show what they do.
	LibraryRetries bool
}

// Default is the plan without any flags.
func Default() Plan {
	return Plan{
		Topologies: slices.Clone(topologies.All), Locks: make([]locks.Spec, 1), Counter: workload.RedisCounter,
		Workload: workload.Shape{
			Workers: 32, Keys: 1, Popularity: workload.Even, TTL: 5 * time.Second, Hold: time.Millisecond,
			Wait: 10 * time.Second, Retry: time.Millisecond, Reenter: 4, Arrivals: workload.Poisson,
		},
		Warmup: 2 * time.Second, Duration: 10 * time.Second,
		Profile: topologies.Fast, Out: "results/runs", Processes: 1, Faults: []string{faults.None},
	}
}

// UsageError is a plan that cannot be carried out anywhere; Mistakes names all that is wrong with it.
type UsageError struct{ Mistakes []string }

// Error lists the mistakes.
func (e *UsageError) Error() string { return strings.Join(e.Mistakes, "\n") }

// SetupError is a machine that a plan cannot be carried out on.
type SetupError struct{ Problems []string }

// Error lists the problems.
func (e *SetupError) Error() string { return strings.Join(e.Problems, "\n") }

// limits that keep a typing error from taking the machine down.
const (
	maxWorkers = 4096
	maxKeys    = 1_000_000
	maxRate    = 1_000_000

	maxProcesses = 64
	maxReenter   = 1_000_000
)

// Combination is one run of a plan.
type Combination struct {
	Topology topologies.Spec
	Lock     locks.Spec
	Scenario scenarios.Scenario // the zero Scenario if the plan has none
	Plan     Plan               // that of this run
	Steps    []faults.Step      // what is broken
}

// Name is the run's topology and lock, and its scenario if it is one.
func (c *Combination) Name() string {
	return strings.TrimSpace(c.Topology.Name + " " + c.Lock.Name + " " + c.Scenario.Name)
}

// Check finds all mistakes of the plan, those that the command line had already included, and whether this
// machine can carry it out, before anything is started. It returns a *UsageError or a *SetupError.
func (p *Plan) Check(ctx context.Context, mistakes []string) (*Job, error) {
	c := check{plan: p, mistakes: mistakes}
	c.numbers()
	combinations := c.strained(c.combinations())
	c.counter(combinations)
	c.faults(combinations)
	server := c.server(ctx)
	c.embedded(server)
	c.commands(server, combinations)
	c.out()
	switch {
	case len(c.mistakes) > 0:
		return nil, &UsageError{append(c.mistakes, c.problems...)}
	case len(c.problems) > 0:
		return nil, &SetupError{c.problems}
	}
	return &Job{Plan: *p, Combinations: combinations, LeftOut: append(c.without, c.leftOut(combinations)...), server: server}, nil
}

type check struct {
	plan     *Plan
	mistakes []string
	problems []string
	without  []string // what is left out although it was meant, in lines
}

func (c *check) mistake(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Sprintf(format, args...))
}

func (c *check) numbers() {
	p, w := c.plan, &c.plan.Workload
	for _, n := range []struct {
		flag      string
		value     int
		low, high int
	}{{"workers", w.Workers, 1, maxWorkers}, {"keys", w.Keys, 1, maxKeys}, {"reenter", w.Reenter, 1, maxReenter},
		{"processes", p.Processes, 1, min(maxProcesses, max(w.Workers, 1))}} {
		if n.value < n.low || n.value > n.high {
			c.mistake("--%s %d: from %d to %d", n.flag, n.value, n.low, n.high)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"ttl", w.TTL, 10 * time.Millisecond}, {"hold", w.Hold, 0}, {"think", w.Think, 0}, {"retry", w.Retry, 0}, {"extend", w.Extend, 0},
		{"wait", w.Wait, time.Millisecond}, {"warmup", p.Warmup, 0}, {"duration", p.Duration, 100 * time.Millisecond},
	} {
		if d.value < d.least {
			c.mistake("--%s %s: at least %s", d.flag, d.value, d.least)
		}
	}
	if w.Rate < 0 || w.Rate > maxRate {
		c.mistake("--rate %g/s: more than 0, at most %d/s", w.Rate, maxRate)
	}
	if w.Rate > 0 && w.Think > 0 {
		c.mistake("--think does nothing with --rate: visits are due by the schedule")
	}
	oneOf(c, "arrivals", string(w.Arrivals), names(workload.AllArrivals, func(a workload.Arrivals) string { return string(a) }))
	oneOf(c, "popularity", string(w.Popularity), names(workload.AllPopularities, func(a workload.Popularity) string { return string(a) }))
	oneOf(c, "profile", string(p.Profile), names(topologies.Profiles, func(a topologies.Profile) string { return string(a) }))
}

func (c *check) combinations() (all []Combination) {
	for _, topology := range c.plan.Topologies {
		for _, lock := range c.plan.Locks {
			if lock.Open == nil {
				lock = locks.Auto(topology.Sites)
			}
			if !lock.Sites.Fits(topology.Sites) && c.everywhere() {
				c.without = append(c.without, fmt.Sprintf("%s: without %s, which lives on one site", topology.Name, lock.Name))
				continue
			}
			if !lock.Sites.Fits(topology.Sites) {
				c.mistake("--lock %s lives on one site, topology %s has %d: use --lock %s", lock.Name, topology.Name,
					topology.Sites, locks.Auto(topology.Sites).Name)
				continue
			}
			all = append(all, Combination{Topology: topology, Lock: lock, Plan: *c.plan})
		}
	}
	return all
}

// everywhere tells whether the plan takes every topology there is: then those that do not fit a lock are left out.
func (c *check) everywhere() bool { return len(c.plan.Topologies) == len(topologies.All) }

// strained makes a run of every scenario that applies to a combination.
func (c *check) strained(all []Combination) (strained []Combination) {
	if len(c.plan.Scenarios) == 0 {
		return all
	}
	for _, x := range all {
		for _, s := range c.plan.Scenarios {
			x.Scenario = s
			p := &x.Plan
			p.Workload, p.Faults, p.Duration, p.Warmup = s.Load(p.Workload.Seed, x.Lock.Claims.Renews), s.Planned(), s.Duration, 0
			p.Processes = max(s.Processes, 1)
			out := s.Out(x.scene())
			if why := p.Counter.Fits(x.Lock, p.Processes); out == "" {
				out = why
			}
			if out == "" {
				strained = append(strained, x)
			} else {
				c.without = append(c.without, fmt.Sprintf("%s %s: without %s: %s", x.Topology.Name, x.Lock.Name, s.Name, out))
			}
		}
	}
	if len(strained) == 0 && len(all) > 0 {
		c.mistakes = append(c.mistakes, c.without...)
	}
	return strained
}

// faults reads the plan of faults for every combination; what is wrong in several is said once.
func (c *check) faults(all []Combination) {
	if p := c.plan; len(all) == 0 { // something else is wrong: what is wrong here as well is said at once
		_, mistakes := faults.Parse(p.Faults, faults.Scene{}, p.Warmup+p.Duration, p.Workload.Seed)
		c.mistakes = append(c.mistakes, mistakes...)
	}
	for i := range all {
		p := &all[i].Plan
		steps, mistakes := faults.Parse(p.Faults, all[i].scene(), p.Warmup+p.Duration, p.Workload.Seed)
		all[i].Steps = steps
		for _, m := range mistakes {
			if !slices.Contains(c.mistakes, m) {
				c.mistakes = append(c.mistakes, m)
			}
		}
	}
}

// leftOut says which faults are not planned although they were meant, in lines.
func (c *check) leftOut(all []Combination) (lines []string) {
	p := c.plan
	if !slices.Equal(p.Faults, []string{faults.Auto}) {
		return nil
	}
	for _, x := range all {
		for _, line := range faults.LeftOut(x.scene(), p.Warmup+p.Duration, p.Workload.Seed) {
			lines = append(lines, fmt.Sprintf("%s %s: without %s", x.Topology.Name, x.Lock.Name, line))
		}
	}
	return lines
}

func (c *check) server(ctx context.Context) topologies.Server {
	server, err := topologies.FindServer(ctx, c.plan.RedisServer)
	switch {
	case errors.Is(err, topologies.ErrNoServer):
		c.problems = append(c.problems, err.Error()+"; to install one: "+topologies.InstallHint(),
			"for a first look without one: --redis-server embedded --topology single,redlock")
	case err != nil:
		c.problems = append(c.problems, "--redis-server: "+err.Error())
	}
	return server
}

func (c *check) embedded(server topologies.Server) {
	if !server.Embedded() {
		return
	}
	if c.plan.Processes > 1 {
		c.mistake("--redis-server embedded lives in the suite: it serves one process, not --processes %d", c.plan.Processes)
	}
	for _, t := range c.plan.Topologies {
		if !t.Embeddable() {
			c.mistake("--redis-server embedded serves single and redlock, not %s", t.Name)
		}
	}
}

// commands asks whether the server knows the locks' commands.
func (c *check) commands(server topologies.Server, all []Combination) {
	asked := map[string]bool{}
	for _, combo := range all {
		if err := combo.Lock.Runs(server); err != nil && !asked[combo.Lock.Name] {
			c.mistake("--lock %s: %v", combo.Lock.Name, err)
		}
		asked[combo.Lock.Name] = true
	}
}

// out tries to write where the runs would go: in the directory, or in the one that it would be made in.
func (c *check) out() {
	dir := filepath.Clean(c.plan.Out)
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".hammerlock-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		c.problems = append(c.problems, fmt.Sprintf("--out %s: %v", c.plan.Out, err))
	}
}

func oneOf(c *check, flag, value string, good []string) bool {
	if slices.Contains(good, value) {
		return true
	}
	c.mistake("--%s %q: there is %s", flag, value, strings.Join(good, ", "))
	return false
}

func names[T any](all []T, name func(T) string) []string {
	var list []string
	for _, t := range all {
		list = append(list, name(t))
	}
	return list
}
