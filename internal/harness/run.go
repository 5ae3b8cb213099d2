package harness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/breaker"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/human"
	"hammerlock/internal/measure"
	"hammerlock/internal/program"
	"hammerlock/internal/recording"
	"hammerlock/internal/witness"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/workload"
)

// cleanTimeout limits the time of cleaning up after a run, plus cleanPage for each page.
const (
	cleanTimeout = 10 * time.Second
	cleanPage    = 200 * time.Microsecond
)

// ownSlots is the size of the lanes for the suite's own events.
const ownSlots = 1 << 10

// Run is one run in progress. When it is prepared, its servers and workers are ready to begin. Do does the rest.
type Run struct {
	job        *Job
	combo      Combination
	deployment *deployment.Deployment
	since      time.Time // when its preparation began
	tell       func(Event)
	incidents  []string // unplanned events of servers, as texts
	missing    bool     // workers on other machines were lost, together with visits that had been counted
	longer     int      // factor by which a repetition must be longer; 0 = none is needed

	run     *results.Run
	cuts    []results.Run // runs with the violations that the flight recorder has saved
	folder  *results.Folder
	meter   *measure.Meter
	session *crew.Session
	record  *recording.Recording
	breaker *breaker.Breaker
	own     *history.Lane   // lane for events of the suite itself
	keys    *history.Lane   // lane for what was seen of the locks' keys in the servers
	heart   *crew.Heartbeat // of this process
	watch   *deployment.Watch
	stream  *witness.Stream // reader of the replication streams; nil = they are not read
	picture *picture        // what a dashboard shows; nil without one
	abort   context.CancelCauseFunc
	stalls  int64 // how often a worker had to wait because its lane was full
}

// Do lets the workers work, injects faults, records, judges and saves. It returns the record of the run.
func (x *Run) Do(ctx, stop context.Context) (_ *results.Run, err error) {
	x.run = x.describe(time.Now())
	if x.folder, err = results.OpenFolder(x.combo.Plan.Out, x.run.Name); err != nil {
		return nil, err
	}
	x.job.foundKilled(x.folder.Killed)
	stop, x.abort = context.WithCancelCause(stop)
	defer x.abort(nil)
	if err := x.begin(); err != nil {
		return nil, errors.Join(err, x.folder.Discard())
	}
	report, cost, err := x.work(ctx, stop)
	allowed := false
	if stop.Err() != nil && !x.endless() {
		x.run.Partial = context.Cause(stop).Error()
	} else if err != nil {
		x.run.Partial = err.Error()
	} else {
		x.run.Partial, allowed = report.Lost, x.combo.Plan.Fleet.AllowLost
	}
	var measured *history.Measured
	if x.deployment.Program == nil {
		x.fill(&report, cost)
		measured = x.measured(&report)
	}
	err = errors.Join(err, x.record.Close(x.run.Partial, allowed && report.Lost != "", measured))
	if errors.Is(err, program.ErrUnused) {
		return nil, errors.Join(err, x.folder.Discard())
	}
	if err != nil {
		return nil, errors.Join(err, x.giveUp())
	}
	if err := x.judge(ctx); err != nil {
		return nil, errors.Join(err, x.giveUp())
	}
	x.run.Took, x.longer = int64(time.Since(x.since)), x.howMuchLonger()
	dir, err := x.folder.Commit(x.run)
	if err != nil {
		return x.run, err
	}
	x.tell(Event{Stage: Saved, Folder: dir, Run: x.run})
	return x.run, nil
}

// howMuchLonger returns the factor by which a repetition must be longer: how much too slow the machine, a server or the
// lock's program was, compared with what a lease allows. It is 1 if none was too slow, and 0 if no repetition is
// needed. A run without a scenario is repeated only after an unplanned event. The end of a service's program is no such
// event: it is under test.
func (x *Run) howMuchLonger() int {
	c, lease := &x.combo, x.combo.Plan.Workload.TTL
	_, stood := x.meter.Stood()
	slow := stood > checker.Margin(lease)
	disturbed := c.Scenario.Name != "" || slow || len(x.incidents) > 0 && !c.Topology.Can().Lock
	if status, _ := x.run.Safety(); status != checker.Inconclusive || !c.Plan.Verify || !disturbed ||
		x.run.Interactive {
		return 0
	}
	if c.Scenario.Name == "" || lease == 0 || c.Plan.Program != nil {
		return 1
	}
	by := max(float64(stood)/float64(checker.Margin(lease)),
		float64(x.watch.Silent)/float64(deployment.Patience(lease)))
	if d := x.run.Driver; d != nil {
		by = max(by, float64(d.P50)/float64(checker.Prompt(lease)))
	}
	return max(int(math.Ceil(min(by, longest))), 1)
}

// begin starts the clock, and prepares recording, measurement and fault injection.
func (x *Run) begin() (err error) {
	if x.deployment.Program != nil {
		return x.beginProgram()
	}
	plan := &x.combo.Plan
	wake := make(chan struct{}, 1)
	if x.session, err = x.deployment.Crew.Begin(wake); err != nil {
		return err
	}
	x.meter = measure.NewMeter(measure.Options{
		Workers: x.combo.recorded(), Callers: plan.Workload.Workers, Keys: plan.Workload.Keys, From: plan.Warmup,
		To:       plan.Warmup + plan.Duration,
		Excludes: x.combo.Lock.Claims.Alone(), OpenLoop: plan.Workload.Open(), Spans: plan.spans(), Log: x.folder.Log(),
		Started: x.run.Started,
		Bears:   x.combo.bears(), Backoff: plan.Workload.Retry,
	})
	o := recording.Options{
		Clock: x.session.Clock, Lanes: x.session.Lanes, Slack: x.session.Slack, Wake: wake, Abandoned: x.session.Dead,
		Observe: x.meter.Observe, Tell: func(now, _ time.Duration) {
			x.tell(Event{Stage: Running, Live: x.meter.Live(now)})
		},
		Header: x.header(), Feeds: x.session.Feeds, Written: x.session.Written, Proven: x.session.Proven,
	}
	if plan.Verify {
		o.File = x.folder.Path(results.HistoryFile)
	}
	b := breaker.Options{Steps: x.combo.Steps, Scene: x.combo.scene(), Shape: &plan.Workload}
	if x.job.Watched {
		x.picture = newPicture(x, o.Header)
		o.Observe, o.Tell = x.picture.observe, x.picture.publish
		b.Extra, b.Stopped, b.Begun = keyPlaces, x.picture.viewer.Stop, x.picture.viewer.Begin
	}
	o.Tell = x.gated(o.Tell)
	if plan.Tap && plan.Verify && plan.MinReplicas == 0 && x.combo.Topology.Can().Own && x.combo.Topology.Can().Ask() {
		x.stream = x.deployment.Stream(x.session.Clock)
		observe := o.Observe
		o.Observe = func(op *history.Op) {
			observe(op)
			x.stream.Observe(op)
		}
	}
	if x.record, err = recording.New(o); err != nil {
		return err
	}
	lane := func() *history.Lane { return x.record.Lane(ownSlots) }
	x.own, x.keys, x.heart = lane(), lane(),
		crew.NewHeartbeat(lane(), crew.Gap(plan.Workload.TTL), plan.Fleet.judged(plan.Processes) > 1, x.record.Note)
	x.watch = x.deployment.Watch(deployment.WatchOptions{Lane: lane, Note: x.record.Note, Heart: x.heart,
		TTL:     plan.Workload.TTL,
		Closely: len(x.combo.Steps) > 0 && x.combo.Scenario.Name == ""})
	x.breaker = breaker.New(x.deployment, x.record, x.session, b)
	return nil
}

// work lets the workers work and injects faults. At the end it looks for keys that were left over.
func (x *Run) work(ctx, stop context.Context) (report crew.Report, cost costs, err error) {
	if x.deployment.Program != nil {
		report, err = x.workProgram(ctx, stop)
		return report, cost, err
	}
	plan := &x.combo.Plan
	end := x.beside(ctx)
	ending, over := context.WithCancel(stop)
	defer over()
	defer time.AfterFunc(plan.Warmup+plan.Duration-x.session.Clock.Now(), over).Stop()
	x.breaker.Start(ctx, ending)
	if x.picture != nil {
		x.tell(Event{Stage: Running, Controls: x.controls(ctx, ending)})
	}
	report, err = x.deployment.Crew.Run(ctx, stop)
	over()
	if x.died(report.Crashes); !plan.Verify {
		err = errors.Join(err, report.Trouble())
	}
	servers := x.breaker.Wait()
	if err == nil && servers == nil && plan.Verify && report.Lost == "" {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx),
			cleanTimeout+time.Duration(len(x.deployment.Pages))*cleanPage)
		defer cancel()
		servers = x.deployment.Leftovers(clean, x.own)
	}
	// The history says which servers failed without a planned fault, did not answer or did not come back. This explains
	// errors of the fault injection and of the final reading.
	told := plan.Verify && (errors.Is(servers, breaker.ErrUnhealthy) || errors.Is(servers, breaker.ErrNoAnswer))
	cost = end()
	if report.Lost != "" {
		x.incidents, x.missing = append(x.incidents, report.Lost), true
	}
	if len(x.incidents) == 0 && !told {
		err = errors.Join(err, servers)
	}
	return report, cost, err
}

// died records the crashes of workers that were not planned.
func (x *Run) died(all []history.Breakdown) {
	for _, b := range all {
		for _, w := range b.Workers {
			x.own.Mark(&history.Op{Kind: history.Crash, Key: -1, Worker: w, Process: b.Process, Call: b.At,
				Outcome: history.OK})
		}
	}
}

// giveUp deletes the files of a run that failed to run, except for the history, which may show the reason.
func (x *Run) giveUp() error {
	if x.combo.Plan.Verify {
		return errors.Join(x.folder.Leave(),
			fmt.Errorf("what was recorded is left in %s", filepath.Dir(x.folder.Path(results.HistoryFile))))
	}
	return x.folder.Discard()
}

// judge judges the run, by its history if there is one, and otherwise by its totals.
func (x *Run) judge(ctx context.Context) (err error) {
	if p := x.deployment.Program; p != nil {
		p.Fill(x.run)
		x.run.Interactive, x.run.Before, x.run.Earlier = x.breaker.Interactive(), x.combo.Before, x.combo.Earlier
		x.tell(Event{Stage: Judging})
		x.run.Verdicts, err = x.run.Judge(x.folder.Path(""))
		return err
	}
	tally, err := x.tally(ctx)
	if err != nil {
		return err
	}
	x.run.Views = results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Fenced: x.meter.Stores.Fenced,
		Doubt: tally.Doubt, Excused: tally.Excused, Unread: tally.Unread, Missing: tally.Missing}
	if !tally.Unread {
		x.run.Views.Final, x.run.Views.Lost = tally.Final, tally.Lost()
	}
	if x.combo.Plan.Verify {
		x.tell(Event{Stage: Judging})
	}
	// the saved files are judged, so that anyone can repeat the verdict
	x.run.Verdicts, err = x.run.Judge(x.folder.Path(""))
	return err
}

// bears is how long a holder may pause without being late. It is 0 for a lock without leases, and for a service, whose
// losses no pause excuses.
func (c *Combination) bears() time.Duration {
	w := &c.Plan.Workload
	if !c.Lock.Claims.Expires || w.TTL == 0 {
		return 0
	}
	return checker.Spare(w.TTL, w.Hold)
}

// tally reads the counter when all workers have ended. Missing views may be excused by pauses of holders and failures
// of servers, but only as many as these can have caused. It is an error if the counter cannot be read, unless a server
// failed without a planned fault.
func (x *Run) tally(ctx context.Context) (t checker.Tally, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		cleanTimeout+time.Duration(len(x.deployment.Pages))*cleanPage)
	defer cancel()
	t = checker.Tally{Acknowledged: x.meter.Stores.Acknowledged, Unknown: x.meter.Stores.Unknown,
		Doubt: strings.Join(x.incidents, "; "), Missing: x.missing}
	counts, err := x.deployment.Views(ctx)
	if t.Unread = err != nil; t.Unread && t.Doubt != "" {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read the counter at the end: %w", err)
	}
	for _, c := range counts {
		t.Final += c.Views
	}
	t.Excused = x.excused(t.Acknowledged)
	if at, stood := x.meter.Stood(); t.Doubt == "" && t.Excused > 0 && t.Lost() > 0 {
		t.Doubt = fmt.Sprintf("the machine paused for %s at %s", human.Duration(stood), human.Duration(at))
	}
	return t, nil
}

// excused is how many of the acknowledged views may be missing under a correct lock: those that late holders may have
// overwritten, one for each worker each time that a server may have forgotten its lock, and one for each evicted key.
// If the server of the counter itself failed, all may be missing.
func (x *Run) excused(acknowledged int64) int64 {
	p, failed := &x.combo.Plan, x.meter.Failed()
	if x.combo.Lock.Sites == locks.NoSite || x.combo.Topology.Can().Lock {
		return 0
	}
	if n := len(x.deployment.Topology.Nodes); slices.ContainsFunc(failed, func(node int64) bool {
		return int(node) >= n || p.Counter.Place == workload.OnTopology
	}) {
		return acknowledged
	}
	return x.meter.Overwritten() + int64(len(failed)*p.Workload.Workers) + x.watch.Lost
}
