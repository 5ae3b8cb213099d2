package harness

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"hammerlock/internal/crew"
	"hammerlock/results"
)

// batch is the part of a job with one lock on one topology. It has a combination for each scenario.
type batch struct {
	*Job
	since time.Time // start of the time budget
	room  room
	runs  map[int]*results.Run // number of a combination -> its latest run
	open  []question
	ended string // reason why no further run of the job begins; empty = runs may begin
	dead  string // reason why this batch has no further runs; empty = runs may begin
	err   error
}

// question is a combination that needs a run, either the first or a repetition.
type question struct {
	number int
	longer int   // factor by which the machine or a program was too slow; 1 = it was not; 0 = no repetition
	shared bool  // other runs were in progress during the last run
	broke  error // why the last run could not be made; nil = it was made
}

// spoilt tells whether other runs may have spoilt the last run: it was too slow while they were in progress.
func (q question) spoilt() bool { return q.shared && q.longer > 1 }

type outcome struct {
	question
	run *results.Run
	err error
}

// The method of returns a name for the topology and the lock. All scenarios of this pair share a time budget.
func (c *Combination) of() string { return c.Topology.Name + " " + c.Lock.Name }

// The method all makes one run of each combination of the batch. Their numbers begin with the argument from, and end
// before the argument to. Then the method repeats runs that ended without a verdict.
func (b *batch) all(ctx, stop context.Context, from, to int) {
	var all []question
	for n := from; n < to; n++ {
		all = append(all, question{number: n})
	}
	b.room.foreign()
	b.ask(ctx, stop, all, func(q question) bool { return b.begins(q.number, from) })
	b.again(ctx, stop)
}

// The method ask makes the runs, in parallel if the machine has room. Before each run it calls the argument begins,
// and skips the run if the result is false. Runs that must not share the machine come last, one after the other.
func (b *batch) ask(ctx, stop context.Context, all []question, begins func(question) bool) {
	alone := func(q question) int {
		if b.Combinations[q.number].Scenario.Alone || q.spoilt() {
			return 1
		}
		return 0
	}
	if b.room.jobs != 1 {
		slices.SortStableFunc(all, func(x, y question) int { return alone(x) - alone(y) })
	}
	// beside has an entry for each run in progress, by the number of its combination. The value is true if another
	// run was in progress at the same time.
	ended, beside := make(chan outcome), map[int]bool{}
	started, starting := make(chan struct{}, len(all)), 0
	for len(all) > 0 || len(beside) > 0 {
		var look <-chan time.Time
		switch {
		case len(all) == 0:
		case stop.Err() != nil || b.err != nil:
			all = nil
			continue
		case len(beside) == 0, alone(all[0]) == 0 && starting == 0 && b.room.more(len(beside)):
			n, begin := all[0].number, begins(all[0])
			if all = all[1:]; !begin {
				continue
			}
			starting++
			beside[n] = false
			for other := range beside {
				beside[other] = beside[other] || len(beside) > 1
			}
			go func() {
				run, longer, err := b.named(ctx, stop, n, started)
				ended <- outcome{question{number: n, longer: longer}, run, err}
			}()
			continue
		default:
			look = time.After(asked)
		}
		select {
		case <-look:
		case <-started:
			starting--
			b.room.anew()
		case o := <-ended:
			o.shared = beside[o.number]
			delete(beside, o.number)
			b.take(o)
		}
	}
}

// The method begins tells whether to run a combination. If not, it adds the reason to NotRun. The argument first is
// the number of the batch's first combination, which is run even if it is longer than the time budget.
func (b *batch) begins(number, first int) bool {
	c := &b.Combinations[number]
	n := c.notRun(cmp.Or(b.ended, b.dead))
	switch {
	case n.Why != "":
		n.Ended = true
	case c.Scenario.Name != "" && number != first && b.spent(c.Plan.Duration):
		n = c.notRun(fmt.Sprintf("the %v of --budget were over", b.Plan.Budget))
		n.Unasked = true
	default:
		return true
	}
	b.NotRun = append(b.NotRun, n)
	return false
}

// The method spent tells whether a run of the given duration would exceed the time budget.
func (b *batch) spent(duration time.Duration) bool {
	return time.Since(b.since)+duration > b.Plan.Budget
}

// take stores the outcome of a run. A run that needs a repetition is added to b.open.
func (b *batch) take(o outcome) {
	if o.err != nil && o.run == nil && o.shared { // other runs may have delayed the servers
		o.longer, o.broke = 2, o.err
		b.open = append(b.open, o.question)
		return
	}
	if o.run != nil {
		b.runs[o.number] = o.run
		if b.Plan.FailFast && o.run.Failed() {
			b.ended = "--fail-fast: a run before it failed"
		} else if b.Enough != nil && b.Enough(o.run) {
			b.ended = "a run before it has shown what was asked for"
		}
		if o.longer <= 1 { // else the machine was too slow for a grant
			b.dead = cmp.Or(b.dead, o.run.NeverGranted())
		}
		if o.longer > 0 {
			b.open = append(b.open, o.question)
		}
	}
	if b.err == nil {
		b.err = o.err
	}
}

// The method again repeats the runs that ended without a verdict, with the next seed and a longer duration.
// Plan.again limits the number of repetitions, and the time budget limits those of scenarios.
//
// If the machine or a program was too slow, all times of the scenario grow by the measured factor. Otherwise only the
// duration grows. A run that other runs may have slowed down is first repeated alone with the same duration. Such a
// run does not count as an attempt.
func (b *batch) again(ctx, stop context.Context) {
	for n, by := range b.Plan.again() {
		open := b.open
		b.open = nil
		if n == 0 {
			b.open = slices.DeleteFunc(slices.Clone(open), question.spoilt)
			open = slices.DeleteFunc(open, func(q question) bool { return !q.spoilt() })
		}
		b.ask(ctx, stop, open, func(q question) bool {
			least, by := 1, by
			if n > 0 {
				least, by = 2, max(q.longer, by)
			}
			c := &b.Combinations[q.number]
			if c.Scenario.Name != "" {
				by = min(by, int((b.Plan.Budget-time.Since(b.since))/c.Plan.Duration))
			}
			if by < least || b.ended != "" || b.dead != "" {
				b.err = cmp.Or(b.err, q.broke)
				return false
			}
			c.again(by, n > 0 && q.longer > 1, b.why(q))
			return true
		})
	}
	for _, q := range b.open {
		b.err = cmp.Or(b.err, q.broke)
	}
}

// The method why returns what was wrong with the last run of a combination. It also adds the name of that run to the
// combination's earlier runs.
func (b *batch) why(q question) string {
	if q.broke != nil {
		return q.broke.Error()
	}
	before, c := b.runs[q.number], &b.Combinations[q.number]
	c.Earlier = append(c.Earlier, before.Name)
	_, why := before.Safety()
	return why
}

// room decides whether another run may begin beside those in progress. Most runs use little CPU time, since they wait
// for leases to end and for faults to heal.
type room struct {
	jobs  int // fixed number of parallel runs; 0 = as many as the machine can run
	probe crew.Probe
	since time.Time     // start of the current measurement of the machine
	last  time.Time     // last call of more
	late  time.Duration // largest delay of a call of more in the measurement
	busy  float64       // share of the machine's CPU time that all programs use
	own   float64       // share of the machine's CPU time that this process uses
	never bool          // other programs kept the machine busy before the first run, so busy is ignored
}

const (
	asked   = 10 * time.Millisecond  // time between two calls of more
	settled = 200 * time.Millisecond // length of a measurement, long enough to include the newest run
	// There is room for another run under two conditions. No goroutine waits longer than prompt for a core, because
	// longer waits make holders late. And some CPU time is idle (see full), because the load of a run varies. This
	// process may use half of full, since the servers need about as much CPU time as the workers.
	prompt = 8 * time.Millisecond
	full   = 0.75
)

// The method more tells whether there is room for another run. Unless the number of runs is fixed, it measures the
// machine. It also measures how late its calls are, so the caller must call it every 10 ms. It returns false until it
// has measured for 200 ms since the newest run began to work.
func (r *room) more(running int) bool {
	if r.jobs > 0 {
		return running < r.jobs
	}
	now := time.Now()
	if r.since.IsZero() {
		r.since, r.last = now, now
		r.probe.Look(time.Duration(now.UnixNano()))
	}
	r.late, r.last = max(r.late, now.Sub(r.last)-asked), now
	if now.Sub(r.since) < settled {
		return false
	}
	used, ok := r.probe.Look(time.Duration(now.UnixNano()))
	r.busy, r.own = (r.busy+used.MachineCPU)/2, (r.own+used.OwnCPU)/2
	free := ok && max(r.late, time.Duration(used.SchedulingP99)) < prompt && r.own < full/2 &&
		(r.never || r.busy < full)
	r.since, r.late = now, 0
	return free && running < 2*runtime.GOMAXPROCS(0)+2
}

// anew starts a new measurement. Call it when a run has begun to work.
func (r *room) anew() { r.since, r.late = time.Time{}, 0 }

// foreign measures, before the first run, whether other programs keep the machine busy.
func (r *room) foreign() {
	if r.jobs != 0 {
		return
	}
	r.probe.Look(time.Duration(time.Now().UnixNano()))
	<-time.After(settled / 2)
	used, _ := r.probe.Look(time.Duration(time.Now().UnixNano()))
	r.never = used.MachineCPU > full
}

// jobs returns the limit of parallel runs; 0 = as many as the machine can run.
func (j *Job) jobs() int {
	if j.Plan.alone() {
		return 1
	}
	return j.Plan.Jobs
}

// Parallel tells whether the job may have several runs in progress at the same time.
func (j *Job) Parallel() bool { return j.jobs() != 1 && len(j.Combinations) > 1 }
