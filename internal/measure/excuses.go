package measure

import (
	"time"

	"hammerlock/history"
)

// excuses estimates how many page views a correct lock may lose through long pauses of holders. The estimate is an
// upper bound. A holder that stores after its pause overwrites all views that others stored during the pause.
type excuses struct {
	bears     time.Duration // longest pause after which a holder is not yet late; 0 = the lock has no leases
	processes []paused      // indexed by process number
	late      int64         // page views that late holders may have overwritten
	failed    []int64       // number of the node of each failure without a planned fault
}

// paused is a process that may be paused: its workers, and how many page views it had stored at recent times.
type paused struct {
	has     []bool // indexed by worker: the worker runs in this process
	workers int
	stored  int64
	recent  []mark // ascending by time, at least everyMark apart
}

type mark struct {
	at     time.Duration
	stored int64 // page views stored before that time
}

const (
	everyMark = 10 * time.Millisecond
	keptMarks = 1000
)

func (e *excuses) process(n int16) *paused {
	for int(n) >= len(e.processes) {
		e.processes = append(e.processes, paused{})
	}
	return &e.processes[n]
}

func (e *excuses) observe(op *history.Op) {
	switch {
	case op.Kind == history.Incident:
		e.failed = append(e.failed, op.Value)
	case op.Kind == history.Gap && op.Value == 0 && e.bears > 0 && op.Return-op.Call > e.bears:
		e.paused(op)
	case e.bears > 0 && op.Kind == history.Store && op.Worker >= 0 && op.Outcome != history.Failed:
		p := e.process(op.Process)
		p.stores(op.Worker)
		if n := len(p.recent); n == 0 || op.Return-p.recent[n-1].at >= everyMark {
			p.recent = append(p.recent[max(0, n+1-keptMarks):], mark{op.Return, p.stored})
		}
		p.stored++
	}
}

// paused adds the views that holders in a paused process may have overwritten. Each worker of the process may
// overwrite one view, and also those that other processes stored during the pause.
func (e *excuses) paused(gap *history.Op) {
	e.late += int64(e.process(gap.Process).workers)
	for n := range e.processes {
		if p := &e.processes[n]; n != int(gap.Process) {
			e.late += p.stored - p.before(gap.Call)
		}
	}
}

// The method stores records that the worker stores page views in this process.
func (p *paused) stores(worker int32) {
	for int(worker) >= len(p.has) {
		p.has = append(p.has, false)
	}
	if !p.has[worker] {
		p.has[worker] = true
		p.workers++
	}
}

// The method before returns how many page views the process had stored at the given time. The number may be up to
// everyMark too old.
func (p *paused) before(t time.Duration) (stored int64) {
	for _, m := range p.recent {
		if m.at > t {
			break
		}
		stored = m.stored
	}
	return stored
}

// Overwritten returns an upper bound for the number of page views that late holders overwrote.
func (m *Meter) Overwritten() int64 { return m.excuses.late }

// Failed returns the numbers of the nodes that failed without a planned fault, one for each failure.
func (m *Meter) Failed() []int64 { return m.excuses.failed }
