package harness

import (
	"context"
	"errors"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/breaker"
	"hammerlock/internal/crew"
	"hammerlock/internal/deployment"
	"hammerlock/internal/measure"
	"hammerlock/internal/program"
	"hammerlock/internal/recording"
	"hammerlock/internal/witness"
	"hammerlock/results"
)

// cleanTimeout limits the time to clean up after a run. cleanPage is added for each page.
const (
	cleanTimeout = 10 * time.Second
	cleanPage    = 200 * time.Microsecond
)

// ownSlots is the number of operations that a lane of the suite itself can buffer. A lane is the log of one recorder.
const ownSlots = 1 << 10

// Run is a run whose servers and workers are ready. Do makes the run.
type Run struct {
	job        *Job
	combo      Combination
	deployment *deployment.Deployment
	since      time.Time // start of the preparation
	tell       func(Event)
	incidents  []string // descriptions of unplanned events of servers
	missing    bool     // workers on other machines were lost, with visits that were already counted
	longer     int      // factor by which a repetition must be longer; 0 = no repetition

	run     *results.Run
	cuts    []results.Run // runs that were saved around violations of a watched program
	folder  *results.Folder
	meter   *measure.Meter
	session *crew.Session
	record  *recording.Recording
	breaker *breaker.Breaker
	own     *history.Lane   // lane for events of the suite itself
	keys    *history.Lane   // lane for the locks' keys that were seen on the servers
	heart   *crew.Heartbeat // heartbeat of this process
	watch   *deployment.Watch
	stream  *witness.Stream // reads the replication streams; nil = they are not read
	picture *picture        // facts for a dashboard; nil = there is none
	abort   context.CancelCauseFunc
	stalls  int64 // number of times that a worker waited because its lane was full
}

// Do makes the run: the workers work, faults are injected, and the operations are recorded and judged. It saves the
// run, and returns its record.
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
		if x.picture != nil { // show also what ended after the last snapshot
			now := x.session.Clock.Now()
			x.picture.publish(now, now)
		}
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
		return x.run, errors.Join(err, x.folder.Left())
	}
	x.tell(Event{Stage: Saved, Folder: dir, Run: x.run})
	return x.run, nil
}

// begin starts the clock of the run. It prepares recording, measurement and fault injection.
func (x *Run) begin() (err error) {
	plan, source := &x.combo.Plan, x.deployment.Program
	wake := make(chan struct{}, 1)
	if x.session, err = x.deployment.Crew.Begin(wake); err != nil {
		return err
	}
	x.meter = measure.NewMeter(x.metered())
	o := recording.Options{
		Clock: x.session.Clock, Lanes: x.session.Lanes, Slack: x.session.Slack, Wake: wake, Abandoned: x.session.Dead,
		Observe: x.meter.Observe, Tell: func(now, _ time.Duration) {
			x.tell(Event{Stage: Running, Live: x.live(x.meter.Live(now))})
		},
		Header: x.header(), Feeds: x.session.Feeds, Written: x.session.Written, Proven: x.session.Proven,
	}
	if plan.Verify {
		o.File = x.folder.Path(results.HistoryFile)
	}
	if source != nil {
		if o.Reader, err = source, source.Record(x.folder.Path("")); err != nil {
			return err
		}
	}
	b := breaker.Options{Steps: x.combo.Steps, Scene: x.combo.scene(), Shape: &plan.Workload}
	if x.job.Watched {
		x.picture = newPicture(x, o.Header)
		o.Observe, o.Tell = x.picture.observe, x.picture.publish
		b.Extra, b.Stopped, b.Begun = keyPlaces, x.picture.viewer.Stop, x.picture.viewer.Begin
	}
	o.Tell = x.gated(o.Tell)
	if plan.Tap && plan.Verify && plan.MinReplicas == 0 && source == nil && x.combo.Topology.Can().Own &&
		x.combo.Topology.Can().Ask() {
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
	x.attend()
	x.breaker = breaker.New(x.deployment, x.record, x.session, b)
	return nil
}

// metered returns the options of the meter. It measures visits that are due after the warm-up and before the end. For
// a watched program, it measures all traffic.
func (x *Run) metered() measure.Options {
	if x.deployment.Program != nil {
		return measure.Options{Workers: recording.ReadWorkers, Keys: recording.ReadKeys, To: history.Forever}
	}
	plan := &x.combo.Plan
	return measure.Options{
		Workers: x.combo.recorded(), Callers: plan.Workload.Workers, Keys: plan.Workload.Keys, From: plan.Warmup,
		To: plan.Warmup + plan.Duration, Excludes: x.combo.Lock.Claims.Alone(), OpenLoop: plan.Workload.Open(),
		Spans: plan.spans(), Log: x.folder.Log(), Started: x.run.Started, Bears: x.combo.bears(),
		Backoff: plan.Workload.Retry, Finite: plan.Workload.Visits > 0,
	}
}

// The method live completes the measurements so far. For a watched program, each grant counts as a visit.
func (x *Run) live(l measure.Live) measure.Live {
	if source := x.deployment.Program; source != nil {
		l.Done = source.Grants()
		l.Visits.Done = l.Done
	}
	return l
}

// work lets the workers work, and injects the faults. At the end it looks for keys that the lock left behind.
func (x *Run) work(ctx, stop context.Context) (report crew.Report, cost costs, err error) {
	plan, source := &x.combo.Plan, x.deployment.Program
	end := x.background(ctx)
	ending, over := context.WithCancel(stop)
	defer over()
	if source == nil { // a watched program decides when it ends
		defer time.AfterFunc(plan.Warmup+plan.Duration-x.session.Clock.Now(), over).Stop()
	}
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
	if err == nil && servers == nil && plan.Verify && report.Lost == "" && source == nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx),
			cleanTimeout+time.Duration(len(x.deployment.Pages))*cleanPage)
		defer cancel()
		servers = x.deployment.Leftovers(clean, x.own)
	}
	// If servers failed, did not answer or did not come back without a planned fault, the history shows it. Then
	// errors of injecting faults and of the last reading are only consequences, and are dropped.
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

// died records each unplanned crash of a worker in the history.
func (x *Run) died(all []history.Breakdown) {
	for _, b := range all {
		for _, w := range b.Workers {
			x.own.Mark(&history.Op{Kind: history.Crash, Key: -1, Worker: w, Process: b.Process, Call: b.At,
				Outcome: history.OK})
		}
	}
}

// giveUp deletes the files of a run that could not be completed. It keeps a recorded history, which may show why.
func (x *Run) giveUp() error {
	if x.combo.Plan.Verify {
		return errors.Join(x.folder.Leave(), x.folder.Left())
	}
	return x.folder.Discard()
}

// judge judges the run, by its history if there is one, and otherwise by its totals.
func (x *Run) judge(ctx context.Context) (err error) {
	if source := x.deployment.Program; source != nil {
		source.Fill(x.run)
	} else if x.run.Views, err = x.views(ctx); err != nil {
		return err
	}
	x.run.Interactive, x.run.Stretched = x.breaker.Interactive(), x.combo.Stretched
	x.run.Before, x.run.Earlier = x.combo.Before, x.combo.Earlier
	if x.combo.Plan.Verify {
		x.tell(Event{Stage: Judging})
	}
	// read the saved files, as "verify check" does, so that any user can repeat the verdict
	x.run.Verdicts, err = x.run.Judge(x.folder.Path(""))
	return err
}

// bears returns the longest pause after which a holder is not yet late. It is 0 for a lock without leases. It is also
// 0 for a service, because no pause excuses a service that loses visits.
func (c *Combination) bears() time.Duration {
	w := &c.Plan.Workload
	if !c.Lock.Claims.Expires || w.TTL == 0 {
		return 0
	}
	return checker.Spare(w.TTL, w.Hold)
}
