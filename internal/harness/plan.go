// Package harness runs plans. It starts topologies, lets workers use locks, measures, judges and saves. It connects
// all other packages.
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

// Plan tells what to run: each of its locks on each of its topologies.
type Plan struct {
	Known      crew.Catalogue // the known locks; the first that fits a topology is that topology's default lock
	Topologies []topologies.Spec
	Preset     bool         // Topologies has defaults, so a lock in a program may choose others
	Locks      []locks.Spec // the zero Spec stands for the default lock of a topology
	// Scenarios are the situations to run each lock in. Without scenarios, there is one run with the load of this
	// plan.
	Scenarios []scenarios.Scenario
	// Budget is the time for all scenarios of one lock on one topology. A scenario that would end later is skipped.
	Budget   time.Duration
	FailFast bool // no run begins after a failed run
	Jobs     int  // limit of parallel scenarios; 0 = as many as the machine can run
	// Attempts limits how often a scenario is run until it has a verdict. A run without a scenario is only repeated
	// after an unplanned event, such as the death of a server.
	Attempts    int
	Workload    workload.Shape // its field End is not set, because it follows from Warmup and Duration
	Warmup      time.Duration
	Duration    time.Duration
	Phases      []Phase // parts of the run, in place of Warmup, Duration and Faults; nil = one constant load
	File        string  // file with the phases, for the command line that repeats a run
	Counter     workload.CounterSpec
	Attach      attach.Flags // an existing deployment; the zero value = the suite starts one
	RedisServer string       // path of the server program; empty = search; topologies.EmbeddedName = servers in memory
	Profile     topologies.Profile
	Durable     topologies.Durability // persistence of servers that the suite starts; empty = none
	MinReplicas int                   // a primary with fewer replicas refuses writes
	Out         string
	Processes   int           // number of worker processes; 1 = workers run in the suite's process
	Fleet       Fleet         // machines on which the workers run; the zero value = this machine
	Faults      []string      // in the syntax of faults.Parse
	Verify      bool          // record and judge every operation
	Program     *program.Spec // program to watch, which takes the place of the workers; nil = none
	Tap         bool          // also compare operations with the replication streams of the servers
	Service     *service.Spec // service to visit, in place of locks and a counter; nil = none
	Services    []Plan        // services to visit, after the runs of the locks
	// LibraryRetries leaves the automatic retries of the client library on, to show the errors that they cause.
	LibraryRetries bool
	// WorkerArgs are arguments that this program needs to become a worker process; nil = none.
	WorkerArgs []string
	DriverEnv  []string            // names of further environment variables for the locks' programs
	Getenv     func(string) string // reads an environment variable; nil = no variable is set
}

// Default returns the plan of a command without flags.
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

// UsageError means that the plan is wrong, on any machine. Mistakes has all reasons.
type UsageError struct{ human.Mistakes }

func (e *UsageError) Error() string { return e.Mistakes.String() }

// SetupError means that the plan may be right, but this machine cannot run it. Problems has all reasons.
type SetupError struct{ Problems []string }

func (e *SetupError) Error() string { return strings.Join(e.Problems, "\n") }

// MostWorkers limits the number of workers, and of simultaneous visits. Like the limits below, it stops a typing
// error from overloading the machine.
const MostWorkers = 4096

const (
	maxKeys      = 1_000_000
	maxRate      = 1_000_000
	maxProcesses = 64
	maxReenter   = 1_000_000
	maxJobs      = 64
	maxCopies    = 3 // replicas of a primary in a topology
)

type Combination struct {
	Topology topologies.Spec
	Lock     locks.Spec
	Scenario scenarios.Scenario // the zero Scenario if the plan has none
	Plan     Plan               // plan of this run alone
	Steps    []faults.Step      // the faults
	Before   []string           // for each earlier attempt: why it was inconclusive
	Earlier  []string           // names of the runs of the earlier attempts
	server   topologies.Server  // servers that the lock uses; zero for a service
	watch    *Combination       // for a service: the run that watches its programs during the visits; nil = none
	// Stretched is the factor by which all times of the scenario have grown; 0 = they have not.
	Stretched int
}

// Name returns the topology, the lock and the scenario of the run.
func (c *Combination) Name() string {
	return strings.TrimSpace(c.Topology.Name + " " + c.Lock.Name + " " + c.Scenario.Name)
}

// Check finds all mistakes in the plan, and checks that this machine can run it. It starts no load. The given
// mistakes of the command line are included. Its error is a *UsageError or a *SetupError.
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

// job returns the job j, or an error if there were mistakes or problems.
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
	without  []string // lines for the user about parts that were asked for, but are left out
	not      []results.NotRun
	counted  string // where page views are counted, in words; empty = as the plan says
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
	}{{"workers", w.Workers, 1, MostWorkers}, {"pages", w.Keys, 1, maxKeys}, {"reenter", w.Reenter, 1, maxReenter},
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

// visitBytes is the approximate memory or disk space, in bytes, that it takes to judge one visit.
const visitBytes = 2500

// Judging returns the approximate memory or disk space, in bytes, that it takes to judge a run. It returns 0 if nothing
// is judged, and for a load without a constant rate: a closed loop, a trace, phases, or scenarios.
func (p *Plan) Judging() int64 {
	if !p.Verify || len(p.Phases) > 0 || len(p.Scenarios) > 0 {
		return 0
	}
	return int64(visitBytes * p.Workload.Rate * (p.Warmup + p.Duration).Seconds())
}

// tooLarge returns a warning if judging a run needs more than the free memory and more than the free disk space, both
// in bytes. It returns nil if the argument memory is 0, which means unknown.
func (p *Plan) tooLarge(memory, disk int64) []string {
	need, free := p.Judging(), max(memory, disk)
	if memory == 0 || need <= free {
		return nil
	}
	most := time.Duration(float64(p.Duration) * float64(free) / float64(need))
	return []string{fmt.Sprintf("--rate %g/s for %s: judging all these visits takes about %d MB, "+
		"and %d MB are free in %s (TMPDIR), %d MB of memory: at most %s at "+
		"that rate; verify soak goes on for hours", p.Workload.Rate, p.Duration, need/1e6, disk/1e6, history.SpaceDir(),
		memory/1e6, most.Truncate(time.Second))}
}

// alone tells whether only one run may be in progress at a time. It returns true without scenarios, on attached
// servers, with agents, and for a watched program.
func (p *Plan) alone() bool {
	return len(p.Scenarios) == 0 || p.Attach.Asked() || p.Fleet.Count > 0 || p.Program != nil
}

// The method faults parses the faults of each combination. A mistake that several combinations share is reported
// once.
func (c *check) faults(all []Combination) {
	// other mistakes may leave no combination, but mistakes in faults are still reported
	if p := c.plan; len(all) == 0 {
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

// leftOut returns a line for each fault that --fault auto leaves out, with the reason.
func (c *check) leftOut(all []Combination) (lines []string) {
	p := c.plan
	if !slices.Equal(p.Faults, []string{faults.Auto}) || len(p.Phases) > 0 {
		return nil
	}
	for _, x := range all {
		if x.Scenario.Name != "" {
			continue // the scenario has its own faults
		}
		for _, line := range faults.LeftOut(x.scene(), p.Warmup+p.Duration, p.Workload.Seed) {
			lines = append(lines, fmt.Sprintf("%s %s: without %s", x.Topology.Name, x.Lock.Name, line))
		}
	}
	return lines
}

// tooLong returns warnings if every holder will be late: visits are longer than the lease, which the lock does not
// extend.
func (c *check) tooLong(all []Combination) (lines []string) {
	for _, x := range all {
		w := &x.Plan.Workload
		if claims := x.Lock.Claims; x.Scenario.Name == "" && claims.Expires && !claims.Renews && w.TTL > 0 &&
			w.Hold >= w.TTL && w.Extend == 0 {
			lines = append(lines,
				fmt.Sprintf("%s %s: --hold %s is not shorter than --lease %s: "+
					"every holder is late, and visits are lost", x.Topology.Name, x.Lock.Name, w.Hold, w.TTL))
		}
	}
	return lines
}

// toStart finds the server program that the suite will start.
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

// The method commands checks that the servers know all commands that the locks need.
func (c *check) commands(server topologies.Server, all []Combination) {
	asked := map[string]bool{}
	for _, combo := range all {
		if err := combo.Lock.Runs(server); err != nil && !asked[combo.Lock.Name] {
			c.mistake("lock", "%s: %v", combo.Lock.Name, err)
		}
		asked[combo.Lock.Name] = true
	}
}

func (c *check) out() {
	err := Saves(c.plan.Out)
	if setup, ok := errors.AsType[*SetupError](err); ok {
		c.problems = append(c.problems, setup.Problems...)
	} else if err != nil {
		c.mistake("out", "%v", err)
	}
}

// Saves checks that runs can be saved in a directory, which need not exist yet. If only this machine is the reason,
// the error is a *SetupError.
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

// oneOf reports a mistake in a flag if its value is not in the list of good values.
func oneOf[T ~string](c *check, flag string, value T, good []T) {
	if !slices.Contains(good, value) {
		c.mistake(flag, "%q: there is %s", value,
			strings.Join(human.Names(good, func(t T) string { return string(t) }), ", "))
	}
}
