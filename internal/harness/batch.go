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

// batch is the part of a job with all scenarios for one lock on one topology.
type batch struct {
	*Job
	since time.Time // time at which its time budget began
	room  room
	runs  map[int]*results.Run // number of a combination -> its run
	open  []question
	ended string // reason why no further run of the job begins; empty = they continue
	dead  string // reason why no further scenario of this lock and topology begins; empty = they continue
	err   error
}

// question is a combination without a verdict.
type question struct {
	number int
	longer int   // factor by which its next run must be longer; 1 = nothing was too slow
	shared bool  // other runs were in progress beside the last run
	broke  error // reason why the last run could not be carried out; nil = it could
}

// spoilt tells whether the last run was too slow, perhaps because of parallel runs.
func (q question) spoilt() bool { return q.shared && q.longer > 1 }

type outcome struct {
	question
	run *results.Run
	err error
}

// of returns the names of the topology and the lock, whose scenarios share a time budget.
func (c *Combination) of() string { return c.Topology.Name + " " + c.Lock.Name }

// all runs every combination once. Then it repeats those without a verdict.
func (b *batch) all(ctx, stop context.Context, from, to int) {
	var all []question
	for n := from; n < to; n++ {
		all = append(all, question{number: n})
	}
	b.room.foreign()
	b.ask(ctx, stop, all, func(q question) bool { return b.begins(q.number, from) })
	b.again(ctx, stop)
}

// ask runs the combinations for which the function begins returns true, in parallel if the machine has room. Those that
// need the machine for themselves come last, one after the other.
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
	// the keys of beside are the numbers of the running combinations; a value is true if others ran beside that one
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

// begins tells whether to run a combination, and records the reason if not. The first combination is run even if it is
// longer than the budget.
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

// spent tells whether a run of the given length would end after the time budget.
func (b *batch) spent(duration time.Duration) bool {
	return time.Since(b.since)+duration > b.Plan.Budget
}

// take stores the outcome of a run.
func (b *batch) take(o outcome) {
	if o.err != nil && o.run == nil && o.shared { // parallel runs may have delayed the start of the servers
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
		if o.longer <= 1 { // a greater factor means that the machine was too slow
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

// again repeats each run that ended without a verdict, with a longer duration and the next seed. It does so as often as
// the plan allows and, for scenarios, while there is time. If the machine or a program was too slow, all times of the
// scenario grow by the measured factor; otherwise only its duration does. A run that parallel runs may have slowed down
// is first repeated alone with the same duration, which does not count as an attempt.
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

// why returns what was wrong with the last run of a question, and records the run's name.
func (b *batch) why(q question) string {
	if q.broke != nil {
		return q.broke.Error()
	}
	before, c := b.runs[q.number], &b.Combinations[q.number]
	c.Earlier = append(c.Earlier, before.Name)
	_, why := before.Safety()
	return why
}

// room decides how many runs are in progress. Most runs need little CPU time: they wait until leases end and faults
// are healed.
type room struct {
	jobs  int // fixed number of runs; 0 = as many as the machine can run
	probe crew.Probe
	since time.Time     // start of the current measurement
	last  time.Time     // last call of the method more
	late  time.Duration // largest delay of a call of more
	busy  float64       // recent usage of the CPU cores by all programs, 0 to 1
	own   float64       // recent usage by this process, 0 to 1
	never bool          // other programs keep the machine busy, so its load tells nothing about the runs
}

const (
	asked   = 10 * time.Millisecond  // time between two calls of the method more
	settled = 200 * time.Millisecond // time of a measurement, so that it includes the newest run
	// There is room for another run if no goroutine waits longer than prompt for a core, which would make holders
	// late. Some of the CPU must also be idle, since the load of a run varies. The servers of a run use about as much
	// CPU time as its workers.
	prompt = 8 * time.Millisecond
	full   = 0.75
)

// more tells whether there is room for another run. It must be called every 10 ms. For a fifth of a second after the
// last run began to work, it measures the delay of the calls, the waits of goroutines for a core, and the usage of the
// cores.
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

// anew starts a new measurement, because a run has begun to work.
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

// jobs returns the largest number of parallel runs; 0 = as many as the machine can run.
func (j *Job) jobs() int {
	if j.Plan.alone() {
		return 1
	}
	return j.Plan.Jobs
}

// Parallel tells whether several runs may be in progress at the same time.
func (j *Job) Parallel() bool { return j.jobs() != 1 && len(j.Combinations) > 1 }
