package breaker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// workers gives one fault access to workers.
type workers struct {
	breaker *Breaker
	lane    *history.Lane
}

// Catch implements faults.Workers.
func (w *workers) Catch(ctx context.Context, point string, key int32) (*faults.Caught, error) {
	b := w.breaker
	b.gate.Lock()
	defer b.gate.Unlock()
	p, ok := workload.FindPoint(point)
	if !ok {
		return nil, fmt.Errorf("no point %q", point)
	}
	caught, err := b.session.Gate.Catch(ctx, p, key)
	if err != nil {
		return nil, err
	}
	b.stopped(caught.Worker, true)
	return &faults.Caught{
		Worker: caught.Worker, Key: caught.Key, At: point,
		Go:  func() { b.stopped(caught.Worker, false); caught.Go() },
		Die: func() { b.stopped(caught.Worker, false); caught.Die() },
	}, nil
}

// Process implements faults.Workers.
func (w *workers) Process(worker int32) (faults.Process, error) {
	for _, p := range w.breaker.session.Processes {
		if slices.Contains(p.Workers, worker) {
			return &victim{p, w}, nil
		}
	}
	return nil, errors.New("the workers live in the suite's own process")
}

// Agent implements faults.Workers.
func (w *workers) Agent(worker int32) (faults.Agent, error) {
	for _, p := range w.breaker.session.Processes {
		if p.Agent != nil && slices.Contains(p.Workers, worker) {
			return w.mortal(p), nil
		}
	}
	return faults.Agent{}, errors.New("the workers live on the suite's own machine")
}

// mortal returns a process's agent whose death is recorded. The crash began when the kill was ordered, and its record
// returns when the agent has confirmed that its workers are stopped. If the kill fails, they may live on.
func (w *workers) mortal(p *crew.Process) faults.Agent {
	a := faults.Agent(*p.Agent)
	a.Kill = func() error {
		ordered := w.breaker.r.Clock().Now()
		err := p.Agent.Kill()
		if err == nil {
			w.crashed(p.Workers, ordered)
		}
		return err
	}
	return a
}

func (w *workers) crashed(workers []int32, at time.Duration) {
	for _, n := range workers {
		w.lane.Mark(&history.Op{Kind: history.Crash, Key: -1, Worker: n, Call: at, Outcome: history.OK})
	}
}

func (b *Breaker) stopped(worker int32, stopped bool) {
	if b.o.Stopped != nil {
		b.o.Stopped(worker, stopped)
	}
}

// victim is a process whose death is recorded.
type victim struct {
	*crew.Process
	workers *workers
}

// Kill implements faults.Process. The crash is recorded before the kill: from then on the workers hold nothing.
func (v *victim) Kill() error {
	v.workers.crashed(v.Workers, v.workers.breaker.r.Clock().Now())
	return v.Process.Kill()
}

// Stop implements faults.Process.
func (v *victim) Stop() error { return v.signal(true, v.Process.Stop) }

// Continue implements faults.Process.
func (v *victim) Continue() error { return v.signal(false, v.Process.Continue) }

func (v *victim) signal(stopped bool, send func() error) error {
	for _, w := range v.Workers {
		v.workers.breaker.stopped(w, stopped)
	}
	return send()
}
