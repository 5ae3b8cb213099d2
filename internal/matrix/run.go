package matrix

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// Run is a matrix that is to be carried out.
type Run struct {
	Expectations *Expectations
	Cells        []Cell
	Seed         uint64
	Parallel     int    // cells that are run at a time
	Dir          string // where everything is kept
	RedisServer  string // as harness.Plan takes it
	Log          *Log
	Tell         func(done, of int, r *Result) // one call at a time
}

// Carry runs the cells that were not run before and returns the results in the order of the cells. When stop is done
// no new cell is begun and those in hand end early and do not count; the error says why cells are missing.
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
			if err := m.Log.Add(&r); err != nil {
				errs = append(errs, err)
				giveUp(err)
			}
		}
		done++
		x := Compare(r, m.Expectations.Expect(r.Cell))
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
		if r, ok := m.Log.Done(c, m.Seed); ok {
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

// cell runs a cell, and once more, longer and with another seed, if the first run does not tell enough. It is false
// if the run was interrupted.
func (m *Run) cell(ctx, stop context.Context, c Cell) (Record, bool) {
	e := m.Expectations.Expect(c)
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

// try carries out one run of a cell.
func (m *Run) try(ctx, stop context.Context, r *Record) {
	p := m.plan(r.Cell)
	if r.Tries > 1 {
		p.Workload.Seed++
		p.Duration *= 2
	}
	r.Seed, r.Error, r.Status = p.Workload.Seed, "", checker.Inconclusive
	r.Command = command(&p)
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

// plan is how a cell is run.
func (m *Run) plan(c Cell) harness.Plan {
	p := harness.Default()
	lock, topology := c.specs()
	p.Topologies, p.Locks, p.Faults = []topologies.Spec{topology}, []locks.Spec{lock}, []string{c.Fault}
	p.Counter, _ = workload.FindCounter(c.Counter)
	p.Processes, p.Verify, p.Warmup = c.Processes, true, 0
	p.RedisServer, p.Out, p.Workload.Seed = m.RedisServer, m.Dir, c.Seed(m.Seed)
	m.Expectations.Conditions(c).into(&p)
	return p
}

// command repeats a plan by hand.
func command(p *harness.Plan) string {
	w := &p.Workload
	parts := []string{"verify", "--topology", p.Topologies[0].Name, "--lock", p.Locks[0].Name, "--fault", p.Faults[0],
		"--workers", strconv.Itoa(w.Workers), "--keys", strconv.Itoa(w.Keys), "--ttl", w.TTL.String(), "--hold", w.Hold.String(),
		"--think", w.Think.String(), "--retry", w.Retry.String(), "--wait", w.Wait.String(), "--duration", p.Duration.String()}
	if w.Extend > 0 {
		parts = append(parts, "--extend", w.Extend.String())
	}
	if usual := harness.Default(); w.Reenter != usual.Workload.Reenter {
		parts = append(parts, "--reenter", strconv.Itoa(w.Reenter))
	}
	if p.Processes > 1 {
		parts = append(parts, "--processes", strconv.Itoa(p.Processes))
	}
	if p.Counter.Name != workload.RedisCounter.Name {
		parts = append(parts, "--counter", p.Counter.Name)
	}
	return strings.Join(append(parts, "--seed", fmt.Sprint(w.Seed)), " ")
}
