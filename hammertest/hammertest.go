// Package hammertest tests your own lock in your own "go test". Verify puts it through the scenarios of the command
// verify, on servers that it starts. Explore tries every interleaving up to a bound, without a server. Both fail the
// test with the cause, the story and the command that repeats it. A package that uses them needs
//
//	func TestMain(m *testing.M) { hammertest.Main(m) }
//
// A lock that claims Renews records its extensions in Env.Renewals: docs/OWN.md says how.
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

// Open makes one worker's access to the lock; see locks.Lock. It is also called in other processes: they run the test
// again, up to its call of Verify or Explore.
type Open func(locks.Env) (locks.Lock, error)

// Config describes the test.
type Config struct {
	// Claims are the lock's promises; nothing else is judged. There must be at least one.
	Claims history.Claims
	// Topology is a name in topologies.All; empty = single. On several sites Env.Sites has one client for each.
	Topology string
	// Scenarios are the subtests of Verify; nil = scenarios.All. Unsuitable scenarios are skipped with the reason.
	Scenarios []scenarios.Scenario
	// Seed repeats another run's schedule; 0 = from HAMMERLOCK_SEED, or random.
	Seed uint64
	// Outlives, Queues, Defaults and Linger describe the lock as in locks.Spec. The clients in Env.Sites log in and
	// select the database. A lock with its own client must do that too, with the Access of Env.Places.
	Outlives, Queues, Defaults bool
	Linger                     func(ttl time.Duration) time.Duration
	// Options limit Explore; nil = explore.Defaults, or smaller limits on several sites.
	Options *explore.Options
}

// Environment variables: two are those of the commands; CI services set the third.
const (
	seedVariable   = "HAMMERLOCK_SEED"
	serverVariable = "HAMMERLOCK_REDIS_SERVER"
	ciVariable     = "CI"
)

// brief is the only scenario with -short, and briefDuration its length.
const (
	brief         = "contention"
	briefDuration = time.Second
)

// Verify runs workers that take the lock on real servers, with each scenario as a subtest. A subtest fails if a claim
// is broken or too little was seen. Without redis-server the test is skipped, or fails if the variable CI is set.
// With -short it runs one scenario for a second. Runs are saved in the artifact directory of the subtest (go test
// -artifacts). Without that flag a run that has not passed stays in a temporary directory, which the output names.
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

// suite is a call of Verify or Explore.
type suite struct {
	Config
	spec     locks.Spec
	topology topologies.Spec
	dir      string // directory of the tested package
	dead     string // why further scenarios are useless; empty = they are not
}

// begin checks a call before anything is started. It returns nil in a child process.
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

// needServer ends a test if there is no server to start.
func needServer(t *testing.T) {
	t.Helper()
	_, err := topologies.FindServer(t.Context(), os.Getenv(serverVariable))
	if !errors.Is(err, topologies.ErrNoServer) {
		return // other errors are mistakes, which the plan's check reports
	}
	text := fmt.Sprintf("hammertest: %v; to install one: %s; for a first look without one: %s=%s", err,
		topologies.InstallHint(), serverVariable, topologies.EmbeddedName)
	if os.Getenv(ciVariable) != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// job is the plan of all scenarios.
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

// seed draws a random seed, short enough to type, if none is given.
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

// command is the command line that repeats a test, or one of its subtests.
func (s *suite) command(sub string) string {
	args := []string{"go", "test", "-C", s.dir, "-count", "1", "-artifacts", "-run",
		exactly(strings.TrimSuffix(s.spec.Name+"/"+sub, "/"))}
	if testing.Short() {
		args = append(args, "-short")
	}
	return driver.Join(append(args, "."))
}

// exactly returns the pattern that matches one test only.
func exactly(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// keep moves a run out of the test's temporary directory. With -artifacts it stays where it is.
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

// run runs one scenario.
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
