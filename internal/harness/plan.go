// Package harness makes a plan into runs: it brings topologies up, lets workers use locks, measures,
// judges and saves. It is the only place that knows everybody.
package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/attach"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
	"hammerlock/internal/program"
	"hammerlock/internal/service"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Plan says what to run: every lock on every topology.
type Plan struct {
	Known      crew.Catalogue // what there is: the lock that a topology is made for is the first that fits it
	Topologies []topologies.Spec
	Preset     bool         // the topologies are a default: a program that has the lock may name others
	Locks      []locks.Spec // the zero Spec stands for the lock that a topology is made for
	// Scenarios say what the locks are strained with, one run each; none = what the rest of the plan says.
	Scenarios   []scenarios.Scenario
	Budget      time.Duration  // of all scenarios of a lock on a topology: none begins that would end later
	FailFast    bool           // nothing begins after a run that failed
	Jobs        int            // how many scenarios run at a time; 0 = as many as the machine bears
	Attempts    int            // how often a scenario is run, at most, while it is undecided, and another run while an unplanned event leaves it so
	Workload    workload.Shape // but for End, which follows from the next two
	Warmup      time.Duration
	Duration    time.Duration
	Phases      []Phase // in place of Warmup, Duration and Faults; nil = the load stays the same
	File        string  // that says the phases, for a command that repeats a run
	Counter     workload.CounterSpec
	Attach      attach.Flags // an existing deployment; the zero value if the suite starts its own
	RedisServer string       // a path; empty to look for one; topologies.EmbeddedName
	Profile     topologies.Profile
	Durable     topologies.Durability // of the servers that the suite starts; empty = they keep no log
	MinReplicas int                   // without which their primaries take no writes
	Out         string
	Processes   int           // that the workers live in; 1 = in the suite itself
	Fleet       Fleet         // the machines that the workers live on; the zero value = this one
	Faults      []string      // as faults.Parse reads them
	Verify      bool          // keep and judge every operation
	Program     *program.Spec // watched in place of workers of the suite's own; nil if there is none
	Tap         bool          // compare the operations with the replication streams of the servers, where these are ours
	Service     *service.Spec // visited in place of locks and a counter of the suite's own; nil if there is none
	Services    []Plan        // each visits a service, after the runs of the locks
	// LibraryRetries leaves the client library's own retries on, to show what they do.
	LibraryRetries bool
	// WorkerArgs make this program a worker process, before the argument that says so; nil = that alone does.
	WorkerArgs []string
	DriverEnv  []string            // variables that programs of locks get, beside those that all of them get
	Getenv     func(string) string // reads a variable; nil = there are none
}

// Default is the plan without any flags.
func Default() Plan {
	return Plan{
		Known:      crew.Catalogue{Topologies: topologies.All, Locks: catalogue.All, Counters: workload.AllCounters},
		Topologies: slices.Clone(topologies.All), Locks: make([]locks.Spec, 1), Counter: workload.RedisCounter,
		Workload: workload.Shape{
			Workers: 32, Keys: 1, Popularity: workload.Even, TTL: 5 * time.Second, Hold: time.Millisecond,
			Wait: 10 * time.Second, Retry: time.Millisecond, Reenter: 4, Readers: 0.5, Permits: 1,
			Arrivals: workload.Poisson,
		},
		Warmup: 2 * time.Second, Duration: 10 * time.Second,
		Budget: 3 * time.Minute, Attempts: 3, Jobs: 1, Profile: topologies.Fast, Out: "results/runs", Processes: 1,
		Faults: []string{faults.None},
	}
}

// UsageError is a plan that cannot be carried out anywhere; Mistakes names all that is wrong with it.
type UsageError struct{ human.Mistakes }

// Error lists the mistakes.
func (e *UsageError) Error() string { return e.Mistakes.String() }

// SetupError is a machine that a plan cannot be carried out on.
type SetupError struct{ Problems []string }

// Error lists the problems.
func (e *SetupError) Error() string { return strings.Join(e.Problems, "\n") }

// limits that keep a typing error from taking the machine down.
const (
	maxWorkers   = 4096
	maxKeys      = 1_000_000
	maxRate      = 1_000_000
	maxProcesses = 64
	maxReenter   = 1_000_000
	maxJobs      = 64
	maxCopies    = 3 // that a topology has
)

// Combination is one run of a plan.
type Combination struct {
	Topology topologies.Spec
	Lock     locks.Spec
	Scenario scenarios.Scenario // the zero Scenario if the plan has none
	Plan     Plan               // that of this run
	Steps    []faults.Step      // what is broken
	Before   []string           // why each attempt before was inconclusive
	Earlier  []string           // and the names of their runs
	server   topologies.Server  // of the lock; zero of a service
	beside   *Combination       // goes on meanwhile: what is watched of a service; nil = nothing
	// Stretched is how many times longer than planned all times are; 0 = they are as planned.
	Stretched int
}

// Name is the run's topology and lock, and its scenario if it is one.
func (c *Combination) Name() string {
	return strings.TrimSpace(c.Topology.Name + " " + c.Lock.Name + " " + c.Scenario.Name)
}

// Check finds all mistakes of the plan, those that the command line had already included, and whether this
// machine can carry it out, before anything is started. It returns a *UsageError or a *SetupError.
func (p *Plan) Check(ctx context.Context, mistakes human.Mistakes) (*Job, error) {
	c := check{plan: p, mistakes: slices.Clone(mistakes)}
	if p.Program != nil {
		c.out()
		all := c.program(ctx)
		return c.job(&Job{Plan: *p, Combinations: all, LeftOut: c.without})
	}
	c.numbers()
	c.phases()
	if p.visitsOnly() {
		c.out()
		return c.job(&Job{Plan: *p, Combinations: append(c.service(ctx), c.services(ctx)...)})
	}
	c.fleet()
	attached, detach := c.attach(ctx)
	c.drivers(ctx)
	combinations := c.strained(c.combinations())
	c.counter(combinations)
	c.faults(combinations)
	server := c.server(ctx, attached)
	c.engines(ctx)
	for i := range combinations {
		combinations[i].server = server
	}
	combinations = c.embedded(server, combinations)
	c.commands(server, combinations)
	c.out()
	c.preflight(ctx, attached, combinations)
	detach()
	return c.job(&Job{Plan: *p, Combinations: append(combinations, c.services(ctx)...),
		LeftOut: slices.Concat(c.without, c.leftOut(combinations), c.tooLong(combinations),
			p.tooLarge(crew.Free(), history.SpaceFree())), NotRun: c.not})
}

// job is the job of a plan without mistakes.
func (c *check) job(j *Job) (*Job, error) {
	switch {
	case len(c.mistakes) > 0:
		for _, problem := range c.problems {
			c.mistake("", "%s", problem)
		}
		return nil, &UsageError{c.mistakes}
	case len(c.problems) > 0:
		return nil, &SetupError{c.problems}
	}
	return j, nil
}

type check struct {
	plan     *Plan
	mistakes human.Mistakes
	problems []string
	without  []string // what is left out although it was meant, in lines
	not      []results.NotRun
	counted  string // where page views are counted in place of a server that the suite starts; empty = as the plan says
}

func (c *check) mistake(setting, format string, args ...any) {
	c.mistakes.Add(human.Wrong(setting, format, args...))
}

func (c *check) numbers() {
	p, w := c.plan, &c.plan.Workload
	for _, n := range []struct {
		flag      string
		value     int
		low, high int
	}{{"workers", w.Workers, 1, maxWorkers}, {"pages", w.Keys, 1, maxKeys}, {"reenter", w.Reenter, 1, maxReenter},
		{"permits", w.Permits, 1, math.MaxUint16},
		{"processes", p.Processes, 1, min(maxProcesses, max(w.Workers, 1))}, {"jobs", p.Jobs, 0, maxJobs},
		{"min-replicas", p.MinReplicas, 0, maxCopies}} {
		if n.value < n.low || n.value > n.high {
			c.mistake(n.flag, "%d: from %d to %d", n.value, n.low, n.high)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
		least time.Duration
	}{
		{"lease", w.TTL, p.leastTTL()}, {"hold", w.Hold, 0}, {"think", w.Think, 0}, {"backoff", w.Retry, 0},
		{"extend", w.Extend, 0},
		{"budget", p.Budget, 0}, {"patience", w.Wait, time.Millisecond}, {"warmup", p.Warmup, 0},
		{"duration", p.Duration, 100 * time.Millisecond},
	} {
		if d.value < d.least {
			c.mistake(d.flag, "%s: at least %s", d.value, d.least)
		}
	}
	if length := p.Warmup + p.Duration; length > 0 && w.Hold > length && len(p.Phases)+len(p.Scenarios) == 0 {
		c.mistake("hold", "%s: longer than the run of %s, in which no visit would end: less, or a longer --duration",
			w.Hold, length)
	}
	if w.Rate < 0 || w.Rate > maxRate {
		c.mistake("rate", "%g/s: more than 0, at most %d/s", w.Rate, maxRate)
	}
	if w.Rate > 0 && w.Think > 0 {
		c.mistake("think", "does nothing with --rate: visits are due by the schedule")
	}
	if w.Rate == 0 && len(p.Phases) == 0 && len(w.Trace) == 0 && w.Arrivals == workload.Uniform {
		c.mistake("arrivals", "%s does nothing without --rate: workers of a closed loop visit when they are ready",
			w.Arrivals)
	}
	if w.Keys == 1 && w.Popularity == workload.Zipf {
		c.mistake("popularity", "%s does nothing with one page: --pages 100 has more", w.Popularity)
	}
	if len(w.Trace) == 0 && !strings.HasPrefix(string(w.Arrivals), workload.TracePrefix) {
		oneOf(c, "arrivals", w.Arrivals, workload.AllArrivals)
	}
	if p.Jobs > 1 && p.alone() {
		c.mistake("jobs",
			"%d: scenarios run side by side, on servers and a machine of their own; anything else runs alone", p.Jobs)
	}
	oneOf(c, "popularity", w.Popularity, workload.AllPopularities)
	oneOf(c, "profile", p.Profile, topologies.Profiles)
}

// visitBytes is about how much memory or disk a recorded visit takes when it is judged.
const visitBytes = 2500

// Judging is about how many bytes of memory or disk it takes to judge a run of a load with a rate; 0 if it is not
// known.
func (p *Plan) Judging() int64 {
	if !p.Verify || len(p.Phases) > 0 || len(p.Scenarios) > 0 {
		return 0
	}
	return int64(visitBytes * p.Workload.Rate * (p.Warmup + p.Duration).Seconds())
}

// tooLarge says that there is no room to judge a run, if the lock serves as many visits as are due: neither so much
// memory nor so much disk is free; 0 = it is not known how much memory there is.
func (p *Plan) tooLarge(memory, disk int64) []string {
	need, free := p.Judging(), max(memory, disk)
	if memory == 0 || need <= free {
		return nil
	}
	most := time.Duration(float64(p.Duration) * float64(free) / float64(need))
	return []string{fmt.Sprintf("--rate %g/s for %s: judging all these visits takes about %d MB, and %d MB are free in %s (TMPDIR), %d MB of memory: at most %s at "+
		"that rate; verify soak goes on for hours", p.Workload.Rate, p.Duration, need/1e6, disk/1e6, history.SpaceDir(),
		memory/1e6, most.Truncate(time.Second))}
}

// alone tells whether each run has the machine for itself, as all have that are no scenario, and those on servers of
// others or on many machines.
func (p *Plan) alone() bool {
	return len(p.Scenarios) == 0 || p.Attach.Asked() || p.Fleet.Count > 0 || p.Program != nil
}

// faults reads the plan of faults for every combination; what is wrong in several is said once.
func (c *check) faults(all []Combination) {
	if p := c.plan; len(all) == 0 { // something else is wrong: what is wrong here as well is said at once
		x := Combination{Plan: p.phased()}
		_, mistakes := x.steps(faults.Scene{Can: topologies.Spec{}.Can()})
		c.mistakes.Add(mistakes...)
	}
	for i := range all {
		steps, mistakes := all[i].steps(all[i].scene())
		all[i].Steps = steps
		if by := all[i].short(); by > 1 {
			all[i].stretch(by)
			all[i].Plan.Duration *= time.Duration(by)
		}
		c.mistakes.Add(mistakes...)
	}
}

// leftOut says which faults are not planned although they were meant, in lines.
func (c *check) leftOut(all []Combination) (lines []string) {
	p := c.plan
	if !slices.Equal(p.Faults, []string{faults.Auto}) || len(p.Phases) > 0 {
		return nil
	}
	for _, x := range all {
		if x.Scenario.Name != "" {
			continue // it has faults of its own
		}
		for _, line := range faults.LeftOut(x.scene(), p.Warmup+p.Duration, p.Workload.Seed) {
			lines = append(lines, fmt.Sprintf("%s %s: without %s", x.Topology.Name, x.Lock.Name, line))
		}
	}
	return lines
}

// tooLong says that every holder will be late, where the load says so of a lock that does not extend its leases.
func (c *check) tooLong(all []Combination) (lines []string) {
	for _, x := range all {
		w := &x.Plan.Workload
		if claims := x.Lock.Claims; x.Scenario.Name == "" && claims.Expires && !claims.Renews && w.TTL > 0 &&
			w.Hold >= w.TTL && w.Extend == 0 {
			lines = append(lines,
				fmt.Sprintf("%s %s: --hold %s is not shorter than --lease %s: every holder is late, and visits are lost", x.Topology.Name, x.Lock.Name, w.Hold, w.TTL))
		}
	}
	return lines
}

// toStart is the program that the nodes will be.
func (c *check) toStart(ctx context.Context) topologies.Server {
	server, err := topologies.FindServer(ctx, c.plan.RedisServer)
	switch {
	case errors.Is(err, topologies.ErrNoServer):
		c.problems = append(c.problems, err.Error()+"; to install one: "+topologies.InstallHint(),
			"for a first look without one: --redis-server embedded")
	case err != nil:
		c.problems = append(c.problems, "--redis-server: "+err.Error())
	default:
		c.place(server)
	}
	return server
}

// commands asks whether the server knows the locks' commands.
func (c *check) commands(server topologies.Server, all []Combination) {
	asked := map[string]bool{}
	for _, combo := range all {
		if err := combo.Lock.Runs(server); err != nil && !asked[combo.Lock.Name] {
			c.mistake("lock", "%s: %v", combo.Lock.Name, err)
		}
		asked[combo.Lock.Name] = true
	}
}

// out tries to write where the runs would go.
func (c *check) out() {
	err := Saves(c.plan.Out)
	if setup, ok := errors.AsType[*SetupError](err); ok {
		c.problems = append(c.problems, setup.Problems...)
	} else if err != nil {
		c.mistake("out", "%v", err)
	}
}

// Saves tries to write where runs would be saved: in the directory, or in the one that it would be made in. A
// *SetupError says why that cannot be done; another error is a mistake.
func Saves(out string) error {
	dir := filepath.Clean(out)
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("%s: %s is a file, and runs are saved in a directory", out, dir)
	}
	if err := human.Writable(dir); err != nil {
		return &SetupError{[]string{fmt.Sprintf("--out %s: %v; name a directory that can be written to", out, err)}}
	}
	return nil
}

// oneOf finds a value that is not one of the good ones.
func oneOf[T ~string](c *check, flag string, value T, good []T) {
	if !slices.Contains(good, value) {
		c.mistake(flag, "%q: there is %s", value,
			strings.Join(human.Names(good, func(t T) string { return string(t) }), ", "))
	}
}
