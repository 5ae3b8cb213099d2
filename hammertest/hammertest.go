// Package hammertest tests your own lock in your own "go test". Verify runs it in the scenarios of the command
// "verify", on servers that it starts. Explore tries every order of messages up to a limit, without a server. Both
// fail the test with a cause, the story, and the command that repeats the test. A package that uses them needs
//
//	func TestMain(m *testing.M) { hammertest.Main(m) }
//
// A lock that claims Renews must record its extensions in Env.Renewals; see docs/OWN.md.
package hammertest

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/explore"
	"hammerlock/history"
	"hammerlock/internal/driver"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
)

// Open makes the access of one worker to the lock; see locks.Lock. It is also called in other processes, which run
// the test again, up to its call of Verify or Explore.
type Open func(locks.Env) (locks.Lock, error)

// Config describes the lock and the test.
type Config struct {
	// Claims are the promises of the lock. Nothing else is judged. At least one claim must be set.
	Claims history.Claims
	// Topology is a name from topologies.All; empty = single. If the topology has several sites, Env.Sites has one
	// client for each.
	Topology string
	// Scenarios are the subtests of Verify; nil = scenarios.All. Those that do not suit the lock are skipped, with
	// the reason.
	Scenarios []scenarios.Scenario
	// Seed repeats the schedule of an earlier run; 0 = the value of HAMMERLOCK_SEED or, without it, a random seed.
	Seed uint64
	// Outlives, Queues, Defaults and Linger describe the lock as in locks.Spec. The clients in Env.Sites log in and
	// select the database. A lock that makes its own client must do this itself, with the Access of Env.Places.
	Outlives, Queues, Defaults bool
	Linger                     func(ttl time.Duration) time.Duration
	// Options are limits of Explore; nil = explore.Defaults, with smaller limits for several sites.
	Options *explore.Options
}

// Environment variables. The commands use the first two as well; CI services set the third.
const (
	seedVariable   = "HAMMERLOCK_SEED"
	serverVariable = "HAMMERLOCK_REDIS_SERVER"
	ciVariable     = "CI"
)

// With -short, Verify runs only the scenario named brief, for the time briefDuration.
const (
	brief         = "contention"
	briefDuration = time.Second
)

// Verify lets workers take the lock on real servers. Each scenario is a subtest, which fails if a claim is broken, or
// if too little was seen for a verdict.
//
// Without redis-server the test is skipped; if the variable CI is set, it fails. With -short, one scenario runs for a
// second. Runs are saved in the artifact directory of the subtest (go test -artifacts). Without that flag, a run that
// did not pass is kept in a temporary directory, which the output names.
func Verify(t *testing.T, open Open, c Config) {
	t.Helper()
	s := begin(t, open, c)
	if s == nil {
		return
	}
	needServer(t)
	job := s.job(t)
	defer func() {
		if err := job.Warm.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, n := range job.NotRun {
		t.Run(n.Scenario, func(t *testing.T) { t.Skip(n.Why) })
	}
	for i := range job.Combinations {
		t.Run(job.Combinations[i].Scenario.Name, func(t *testing.T) {
			if s.dead != "" {
				t.Skip(s.dead)
			}
			s.run(t, job.Only(i))
		})
	}
}

// suite is one call of Verify or Explore.
type suite struct {
	Config
	spec     locks.Spec
	topology topologies.Spec
	dir      string // directory of the tested package
	dead     string // why further scenarios are useless; empty = they may run
}

// begin checks the arguments of a call, before anything is started. It returns nil in a child process.
func begin(t *testing.T, open Open, c Config) *suite {
	t.Helper()
	c.Topology = cmp.Or(c.Topology, topologies.All[0].Name)
	topology, ok := topologies.Find(c.Topology)
	if !ok {
		t.Fatalf("hammertest: Config.Topology %q: there is %s", c.Topology, strings.Join(topologies.Names(), ", "))
	}
	if open == nil || c.Claims == (history.Claims{}) {
		t.Fatal("hammertest: a lock needs a function that opens it, and claims that it is judged by; " +
			"most promise history.Claims{Excludes: true, Expires: true, Owned: true}")
	}
	s := &suite{Config: c, topology: topology, spec: locks.Spec{
		Name: t.Name(), Sites: locks.OneSite, Claims: c.Claims, Outlives: c.Outlives, Queues: c.Queues,
		Defaults: c.Defaults, Linger: c.Linger, Open: open,
	}}
	if topology.Sites > 1 {
		s.spec.Sites = locks.ManySites
	}
	if child() {
		serve(t, s.spec)
		return nil
	}
	if stdout == nil {
		t.Fatal("hammertest: this package does not call hammertest.Main, and needs it for processes of its own; " +
			"write in one of its tests:\n\n" +
			"\tfunc TestMain(m *testing.M) { hammertest.Main(m) }")
	}
	var err error
	if s.dir, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	return s
}

// needServer skips or fails the test if no redis-server is installed.
func needServer(t *testing.T) {
	t.Helper()
	_, err := topologies.FindServer(t.Context(), os.Getenv(serverVariable))
	if !errors.Is(err, topologies.ErrNoServer) {
		return // the check of the plan reports any other error
	}
	text := fmt.Sprintf("hammertest: %v; to install one: %s; for a first look without one: %s=%s", err,
		topologies.InstallHint(), serverVariable, topologies.EmbeddedName)
	if os.Getenv(ciVariable) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// job returns the job with all scenarios.
func (s *suite) job(t *testing.T) *harness.Job {
	t.Helper()
	p := harness.Default()
	p.Topologies, p.Locks, p.Scenarios, p.Verify, p.Warmup = []topologies.Spec{s.topology}, []locks.Spec{s.spec},
		s.Scenarios, true, 0
	p.RedisServer, p.WorkerArgs, p.Out = os.Getenv(serverVariable), childArgs(s.spec.Name), t.TempDir()
	if p.Scenarios == nil {
		p.Scenarios = scenarios.All
	}
	if testing.Short() {
		short, _ := scenarios.Find(brief)
		short.Duration = briefDuration
		p.Scenarios = []scenarios.Scenario{short}
	}
	s.seed(t)
	p.Workload.Seed = s.Seed
	job, err := p.Check(t.Context(), nil)
	if err != nil {
		t.Fatalf("hammertest: %v", err)
	}
	job.Warm = new(harness.Warm)
	job.Command = func(c harness.Combination) string {
		return seedVariable + "=" + strconv.FormatUint(c.Plan.Workload.Seed, 10) + " " + s.command(c.Scenario.Name)
	}
	return job
}

// seed chooses a random seed if the test and the environment give none. It is short enough to be typed.
func (s *suite) seed(t *testing.T) {
	t.Helper()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if s.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("hammertest: %s: %v", seedVariable, err)
		}
	}
	if s.Seed == 0 {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		s.Seed = uint64(binary.LittleEndian.Uint32(b[:]))
	}
}

// command returns the command line that repeats a test. The argument sub is the name of a subtest; empty = the whole
// test.
func (s *suite) command(sub string) string {
	args := []string{"go", "test", "-C", s.dir, "-count", "1", "-artifacts", "-run",
		exactly(strings.TrimSuffix(s.spec.Name+"/"+sub, "/"))}
	if testing.Short() {
		args = append(args, "-short")
	}
	return driver.Join(append(args, "."))
}

// exactly returns a pattern for -run that matches only the test or subtest of that name.
func exactly(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// keep moves a saved run out of the temporary directory, which is deleted after the test. With -artifacts, it does
// not move the run.
func keep(run string) (string, error) {
	if f := flag.Lookup("test.artifacts"); f != nil && f.Value.String() == "true" {
		return run, nil
	}
	dir, err := os.MkdirTemp("", "hammertest-")
	if err != nil {
		return run, err
	}
	saved := filepath.Join(dir, filepath.Base(run))
	return saved, os.Rename(run, saved)
}

func (s *suite) run(t *testing.T, job *harness.Job) {
	t.Helper()
	out := t.ArtifactDir()
	job.Combinations[0].Plan.Out = out
	runs, err := job.Run(t.Context(), t.Context())
	if err != nil {
		t.Fatalf("hammertest: %v", err)
	}
	if len(runs) == 0 {
		t.Fatal("hammertest: interrupted before the run began")
	}
	s.dead = runs[0].NeverGranted()
	j := runs[0].Judgement()
	status, text := j.Status()
	if t.Log(text); status == checker.Pass {
		return
	}
	saved, err := keep(filepath.Join(out, runs[0].Name))
	if err != nil {
		t.Error(err)
	}
	j.Saved = filepath.Join(saved, results.HistoryFile)
	var b strings.Builder
	if err := results.WriteVerdicts(&b, []results.Judgement{j}); err != nil {
		t.Fatal(err)
	}
	t.Fatal("\n" + b.String()) // an inconclusive run has not passed
}
