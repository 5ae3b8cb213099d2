package cli

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"hammerlock/faults"
	"hammerlock/internal/driver"
	"hammerlock/internal/harness"
	"hammerlock/internal/settings"
	"hammerlock/topologies"
)

func (e Env) benchPlan() harness.Plan {
	p := harness.Default()
	p.Known, p.Attach.Secrets = e.knows(), e.secrets
	p.Workload.Seed = drawSeed()
	return p
}

func (e Env) verifyPlan() harness.Plan {
	p := e.benchPlan()
	p.Verify, p.Scenarios, p.Faults, p.Warmup = true, allStrains, []string{faults.Auto}, 0
	p.Jobs, p.Tap = 0, true
	p.Workload.TTL = 3 * time.Second // longer than a failover, but short enough that a lease expires within the run
	p.Duration = 20 * time.Second
	return p
}

// shortPlan returns the default plan of commands that make many runs on one topology. Each command sets its own
// duration.
func (e Env) shortPlan() harness.Plan {
	p := e.benchPlan()
	p.Topologies = topologies.All[:1]
	return p
}

// drawSeed returns a random seed, with few enough digits to be typed.
func drawSeed() uint64 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return uint64(binary.LittleEndian.Uint32(b[:]))
}

// mostAttempts is the limit of --attempts, so that a typing error does not cause endless runs.
const mostAttempts = 100

// planFlags declares the flags of a plan. The values in o.plan become the defaults.
func (o *options) planFlags() {
	p, w := &o.plan, &o.plan.Workload
	if p.Service != nil {
		o.serviceFlags()
		return
	}
	o.Begin(runSection)
	defer o.Begin(settings.Section{})
	settings.Some(&o.Set, flag(axis, "topology", "what to bring up: "+topologiesOf(p.Known).String()), &p.Topologies,
		topologiesOf(p.Known))
	settings.Some(&o.Set, flag(axis, "lock", "what to take:\n"+lockNames(p.Known.Locks)+
		";\nor exec:COMMAND, a program that has the lock, as in --lock 'exec:python3 driver.py': docs/DRIVERS.md"),
		&p.Locks, locksOf(p.Known))
	breaks, breaking := load, "auto: what the lock must survive; none"
	if p.Verify {
		breaks, breaking = instead,
			"auto: what the lock must survive, as where only the load is given; none (default: scenarios)"
		o.scenarioFlags()
		o.Toggle(flag(session, "fail-fast", "begin nothing after a run that failed"), "", &p.FailFast)
		o.judgingFlags()
	}
	o.Names(flag(breaks, "fault", "what breaks in one run: names from --list, with @TIME or @POINT and\n"+
		"heal@TIME, as in kill-primary@2s,heal@5s; "+breaking), &p.Faults, faultNames())
	fault := o.Flags.Lookup("fault")
	settings.ValueOf(fault).Complete = completeFaults
	if p.Verify {
		fault.DefValue = "" // the default is scenarios
	}
	o.Begin(loadSection)
	o.loadFlags("a visit gives up this long after it was due")
	o.Integer(flag(load, "processes", "how many processes the workers live in; 1 = in the suite itself"),
		&p.Processes, 0)
	o.Duration(flag(load, "lease", "how long a grant lasts if it is not extended"), &w.TTL)
	o.Duration(flag(load, "hold", "how long a visit stays between load and store"), &w.Hold)
	o.Duration(flag(load, "backoff", "mean backoff between two tries, jittered by half of it"), &w.Retry)
	o.Duration(flag(load, "extend", "a visit lengthens its lease to this before it stores; 0s = it does not"),
		&w.Extend)
	o.Integer(flag(load, "reenter", "one in how many visits takes a reentrant lock again"), &w.Reenter, 0)
	o.Share(flag(load, "readers", "the share of visits that only read, if readers share the lock, as in 80%"),
		"percent",
		&w.Readers, "from 0% to 100%", func(n float64) bool { return n >= 0 })
	o.Integer(flag(load, "permits", "up to how many permits a visit of a semaphore asks for"), &w.Permits, 0)
	o.Begin(runSection)
	settings.One(&o.Set, flag(setting, "counter", "where the page views are counted: "+countersOf(p.Known).String()),
		&p.Counter, countersOf(p.Known))
	o.Names(flag(setting, "driver-env", "variables that programs of --lock exec: get, "+
		"besides "+strings.Join(driver.Inherited, ", ")), &p.DriverEnv, nil)
	o.Toggle(flag(setting, "library-retries", ""), "", &p.LibraryRetries).Hidden = true
	o.seed("repeats the schedule of another run (default: drawn and printed)")
	o.serverFlags()
	o.Begin(attachSection)
	o.attachFlags()
	o.Begin(outputSection)
	o.out("where runs are saved")
}

func (o *options) judgingFlags() {
	p := &o.plan
	o.Integer(flag(session, "attempts",
		"how often a scenario is run, at most, while it is undecided, within the budget; and any other run\n"+
			"while a server that failed without a planned fault, or a machine that paused, leaves it undecided"),
		&p.Attempts, mostAttempts)
	settings.One(&o.Set, flag(setting, "tap",
		"whether to compare what calls were answered with the servers' replication streams: "+
			"auto = where the suite starts these, and\n--min-replicas does not count them; off"), &p.Tap, taps)
	o.Integer(flag(session, "jobs",
		"how many scenarios of a lock run at a time (0: as many as the machine bears; "+
			"with --web or --metrics, 1)"), &p.Jobs, 0)
	o.Duration(flag(session, "budget",
		"no scenario begins that would end later, for each lock on a topology; "+
			"explore counts on the first"), &p.Budget)
}

func (o *options) serverFlags() {
	p := &o.plan
	settings.One(&o.Set, flag(setting, "profile", "timers of failure detection: fast, for tests; "+
		"stock, the servers' own"), &p.Profile, settings.Words(topologies.Profiles...))
	settings.One(&o.Set, flag(setting, "aof", "the log of writes that servers keep (appendonly), "+
		"and how often they sync it: off, everysec, always.\nA server that is killed comes back with it"),
		&p.Durable, syncs)
	o.Integer(flag(setting, "min-replicas", "a primary takes no writes unless this number of replicas have followed "+
		"it within a second or two\n(min-replicas-to-write, with a min-replicas-max-lag of 1)"), &p.MinReplicas, 0)
	o.Text(flag(setting, "redis-server", "the server to start, also Valkey's or Redict's; or embedded: none, "+
		"for a first look with 4 workers\nat single and redlock (default: looked for)"), "path", &p.RedisServer)
}

// folder returns the path of a directory for the runs of a plan. It contains the time and random letters, so that
// commands started in the same second do not share a directory.
func folder(p harness.Plan, what string) string {
	return filepath.Join(p.Out, fmt.Sprintf("%s-%s-%s", what, time.Now().UTC().Format("20060102-150405"),
		strings.ToLower(rand.Text()[:6])))
}
