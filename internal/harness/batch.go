package harness

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"hammerlock/internal/crew"
	"hammerlock/results"
)

// batch is the part of a job that is about one lock on one topology.
type batch struct {
	*Job
	since  time.Time // when its budget began
	room   room
	runs   map[int]*results.Run // by the number of their combinations
	open   []question
	failed bool // nothing is to begin any more
	err    error
}

// question is a combination without an answer, and how many times longer its next run has to be.
type question struct {
	number, longer int
	crowded        bool // other runs went on beside the last one
}

// outcome is what became of a run.
type outcome struct {
	question
	run *results.Run
	err error
}

// of names the lock and the topology, for which scenarios share a budget.
func (c *Combination) of() string { return c.Topology.Name + " " + c.Lock.Name }

// first asks everything once: as many runs at a time as there is room for, but for scenarios that need the machine for themselves.
func (b *batch) first(ctx, stop context.Context, from, to int) {
	var numbers []int
	for n := from; n < to; n++ {
		numbers = append(numbers, n)
	}
	alone := func(n int) int { return map[bool]int{true: 1}[b.Combinations[n].Scenario.Alone] }
	if b.room.jobs != 1 {
		slices.SortStableFunc(numbers, func(x, y int) int { return alone(x) - alone(y) })
	}
	ended, crowded := make(chan outcome), map[int]bool{} // crowded has the runs that go on
	for len(numbers) > 0 || len(crowded) > 0 {
		var look <-chan time.Time
		switch {
		case len(numbers) == 0:
		case !b.begins(stop, numbers[0], from):
			numbers = numbers[1:]
			continue
		case len(crowded) == 0, alone(numbers[0]) == 0 && b.room.more(len(crowded)):
			n := numbers[0]
			numbers, crowded[n] = numbers[1:], false
			for other := range crowded {
				crowded[other] = len(crowded) > 1
			}
			go func() {
				run, longer, err := b.named(ctx, stop, n)
				ended <- outcome{question{number: n, longer: longer}, run, err}
			}()
			continue
		default:
			look = time.After(ask)
		}
		select {
		case <-look:
		case o := <-ended:
			o.crowded = crowded[o.number]
			delete(crowded, o.number)
			b.take(o)
		}
	}
}

// begins tells whether a combination is to be run, and says of one that is not why. The first one of all begins however long it is.
func (b *batch) begins(stop context.Context, number, first int) bool {
	c := &b.Combinations[number]
	n := c.notRun("--fail-fast: a run before it failed")
	switch {
	case stop.Err() != nil || b.err != nil:
		return false
	case b.failed:
	case c.Scenario.Name != "" && number != first && b.spent(c.Plan.Duration):
		n = c.notRun(fmt.Sprintf("the %v of --budget were over", b.Plan.Budget))
		n.Unasked = true
	default:
		return true
	}
	b.NotRun = append(b.NotRun, n)
	return false
}

// spent tells whether what takes so long can no longer end in time.
func (b *batch) spent(duration time.Duration) bool {
	return time.Since(b.since)+duration > b.Plan.Budget
}

// take keeps what became of a run.
func (b *batch) take(o outcome) {
	if o.run != nil {
		b.runs[o.number] = o.run
		b.failed = b.failed || b.Plan.FailFast && o.run.Failed()
		if o.longer > 0 {
			b.open = append(b.open, o.question)
		}
	}
	if b.err == nil {
		b.err = o.err
	}
}

// longest is how many times longer than planned all times of a scenario can become.
const longest = 8

// again asks once more what is undecided, each time alone, with the next seed and longer, as often as the plan allows and, for scenarios,
// as far as there is time: what they were too short for is no answer. If a scenario was undecided because the machine or a program was
// slow, all its times grow by as much; otherwise it only goes on for twice as long. What other runs may have slowed down is
// asked alone first, as planned, and that is no attempt.
func (b *batch) again(ctx, stop context.Context) {
	for n := range b.Plan.Attempts {
		open := b.open
		b.open = nil
		for _, q := range open {
			if n == 0 && !q.crowded {
				b.open = append(b.open, q)
				continue
			}
			c := &b.Combinations[q.number]
			by := max(q.longer, 2)
			if n == 0 {
				by, q.longer = 1, 1
			}
			if c.Scenario.Name != "" {
				by = min(by, int((b.Plan.Budget-time.Since(b.since))/c.Plan.Duration))
			}
			if by < min(2, n+1) || stop.Err() != nil || b.failed || b.err != nil {
				continue
			}
			before := b.runs[q.number]
			_, why := before.Safety()
			c.Earlier = append(c.Earlier, before.Name)
			c.again(by, q.longer > 1, why)
			run, longer, err := b.named(ctx, stop, q.number)
			b.take(outcome{question{number: q.number, longer: longer}, run, err})
		}
	}
}

// again makes the plan of another run, so many times longer: all its times, or its duration alone. Why says what was wrong with the one before.
func (c *Combination) again(by int, all bool, why string) {
	c.Before = append(c.Before, why)
	before := max(c.Stretched, 1)
	if to := min(before*by, longest); all && to > before {
		by, c.Stretched, c.Steps = to/before, to/before*before, slices.Clone(c.Steps)
		c.Plan.Workload.Stretch(by)
		for i := range c.Steps {
			c.Steps[i] = c.Steps[i].Stretched(by)
		}
	}
	c.Plan.Repeat(by)
}

// room is for how many runs the machine has room. Most of them only wait, for leases to end and for what was broken to be mended.
type room struct {
	jobs  int // so many; 0 = as many as the machine bears
	probe crew.Probe
	since time.Time     // when what is measured began
	last  time.Time     // when it was asked the last time
	late  time.Duration // by how much it was asked too late, at most
}

const (
	ask     = 10 * time.Millisecond  // how often a room is asked
	settled = 200 * time.Millisecond // after that what a run uses shows
	// A machine has room while nothing waits for a core for long: that, and not how busy it is, is what makes holders late.
	prompt = 8 * time.Millisecond
)

// more tells whether another run has room beside those that go on. It expects to be asked every 10 ms. Its measure is how late it is asked
// and how long goroutines wait for a core, over a fifth of a second after the run that began last.
func (r *room) more(running int) bool {
	if r.jobs > 0 {
		return running < r.jobs
	}
	now := time.Now()
	if r.since.IsZero() {
		r.since, r.last = now, now
	}
	r.late, r.last = max(r.late, now.Sub(r.last)-ask), now
	if running >= 2*runtime.GOMAXPROCS(0)+2 || now.Sub(r.since) < settled {
		return false
	}
	used, ok := r.probe.Look(time.Duration(now.UnixNano()))
	free := ok && max(r.late, time.Duration(used.SchedulingP99)) < prompt
	r.since, r.late = now, 0
	return free
}

// jobs is how many runs go on at a time; 0 = as many as the machine bears. What is no scenario has the machine for itself, and so have
// runs on servers of others or on many machines.
func (j *Job) jobs() int {
	if p := &j.Plan; len(p.Scenarios) == 0 || p.Attach.Asked() || p.Fleet.Agents != "" {
		return 1
	}
	return j.Plan.Jobs
}

// Beside tells whether runs may go on side by side.
func (j *Job) Beside() bool { return j.jobs() != 1 && len(j.Combinations) > 1 }
