package matrix

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Run is a matrix to run.
type Run struct {
	Expectations *Expectations
	Cells        []Cell
	Seed         uint64
	Parallel     int    // cells at a time
	Dir          string // where everything is kept
	RedisServer  string // as harness.Plan takes it
	Fleet        harness.Fleet
	Log          *Log
	Command      func(harness.Plan) string     // what repeats a run
	Tell         func(done, of int, r *Result) // one call at a time
}

// Carry runs the cells that the log does not have and returns all results in the order of the cells. When stop is done
// it starts no new cell and drops those that are running; the error says why cells are missing.
func (m *Run) Carry(ctx, stop context.Context) ([]Result, error) {
	stop, giveUp := context.WithCancelCause(stop)
	defer giveUp(nil)
	found := make([]*Result, len(m.Cells))
	next := make(chan int)
	var mu sync.Mutex
	var errs []error
	done := 0
	keep := func(i int, r Record, fresh bool) {
		mu.Lock()
		defer mu.Unlock()
		if fresh {
			if err := m.Log.add(&r); err != nil {
				errs = append(errs, err)
				giveUp(err)
			}
		}
		done++
		x := compare(r, m.Expectations.expect(r.Cell))
		found[i] = &x
		m.Tell(done, len(m.Cells), &x)
	}
	var workers sync.WaitGroup
	for range m.Parallel {
		workers.Go(func() {
			for i := range next {
				if r, ok := m.cell(ctx, stop, m.Cells[i]); ok {
					keep(i, r, true)
				}
			}
		})
	}
	for i, c := range m.Cells {
		if r, ok := m.Log.find(c, m.Seed); ok {
			keep(i, r, false)
			continue
		}
		select {
		case next <- i:
		case <-stop.Done():
		}
	}
	close(next)
	workers.Wait()
	var all []Result
	for _, r := range found {
		if r != nil {
			all = append(all, *r)
		}
	}
	if stop.Err() != nil {
		errs = append(errs, context.Cause(stop))
	}
	return all, errors.Join(errs...)
}

// cell runs a cell, and once more, twice as long and with another seed, if the first run does not settle it. It is
// false if the run was interrupted.
func (m *Run) cell(ctx, stop context.Context, c Cell) (Record, bool) {
	e := m.Expectations.expect(c)
	r := Record{Cell: c}
	start := time.Now()
	for r.Tries = 1; ; r.Tries++ {
		m.try(ctx, stop, &r)
		if stop.Err() != nil {
			return r, false
		}
		if r.Tries == 2 || !again(&r, e) {
			r.Took = time.Since(start)
			return r, true
		}
	}
}

// try makes one run of a cell.
func (m *Run) try(ctx, stop context.Context, r *Record) {
	p := m.plan(r.Cell)
	for range r.Tries - 1 {
		p.Repeat(2)
	}
	r.Seed, r.Error, r.Status = p.Workload.Seed, "", checker.Inconclusive
	r.Command = m.Command(p)
	job, err := p.Check(stop, nil)
	if err != nil {
		r.Error = err.Error()
		return
	}
	job.Command = func(harness.Combination) string { return r.Command }
	job.Progress = func(harness.Event) {}
	runs, err := job.Run(ctx, stop)
	if err != nil {
		r.Error = err.Error()
	}
	if len(runs) == 0 {
		return
	}
	r.Saved = filepath.Join(p.Out, runs[0].Name)
	r.observe(&runs[0])
}

// Expected is about how long all cells take, if each is run once.
func (m *Run) Expected() (all time.Duration) {
	for _, c := range m.Cells {
		p := m.plan(c)
		all += p.Warmup + p.Duration + time.Second // servers start, and a history is judged
	}
	return all / time.Duration(max(m.Parallel, 1))
}

// plan is how a cell is run.
func (m *Run) plan(c Cell) harness.Plan {
	p := harness.Default()
	lock, topology := c.specs()
	p.Topologies, p.Locks, p.Faults = []topologies.Spec{topology}, []locks.Spec{lock}, []string{c.Fault}
	p.Counter, _ = workload.FindCounter(c.Counter)
	p.Processes, p.Verify, p.Warmup, p.Attempts = c.Processes, true, 0, 1
	p.Fleet, p.RedisServer, p.Out, p.Workload.Seed = m.Fleet, m.RedisServer, m.Dir, c.seed(m.Seed)
	m.Expectations.prepare(c, &p)
	return p
}
