package measure

import (
	"time"

	"hammerlock/history"
)

// excuses bound how many page views a right lock can have lost because workers paused while they held it, for longer
// than checker.Spare. A holder that stores too late overwrites what others stored meanwhile.
type excuses struct {
	bears     time.Duration // a shorter pause makes no holder late; 0 = the lock has no lease that a pause can outlast
	processes []paused      // by number
	late      int64         // page views that late holders can have overwritten
	failed    []int64       // the node of every incident
}

// paused is what is known of a process: its workers, and how many page views they had stored by a moment.
type paused struct {
	has     []bool // by worker
	workers int
	stored  int64
	recent  []mark // the latest, in order, at least everyMark apart
}

type mark struct {
	at     time.Duration
	stored int64 // before then
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

// observe takes in an operation that was answered.
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

// paused counts what the holders of a process that paused can have overwritten: one page view each, and those that
// other processes stored during the pause.
func (e *excuses) paused(gap *history.Op) {
	e.late += int64(e.process(gap.Process).workers)
	for n := range e.processes {
		if p := &e.processes[n]; n != int(gap.Process) {
			e.late += p.stored - p.before(gap.Call)
		}
	}
}

// stores notes that a worker lives in the process.
func (p *paused) stores(worker int32) {
	for int(worker) >= len(p.has) {
		p.has = append(p.has, false)
	}
	if !p.has[worker] {
		p.has[worker] = true
		p.workers++
	}
}

// before is how many page views a process had stored by a moment, or a little earlier.
func (p *paused) before(t time.Duration) (stored int64) {
	for _, m := range p.recent {
		if m.at > t {
			break
		}
		stored = m.stored
	}
	return stored
}

// Overwritten is how many page views holders can have overwritten because their processes paused.
func (m *Meter) Overwritten() int64 { return m.excuses.late }

// Failed lists the numbers of the nodes that failed by themselves, one for each time.
func (m *Meter) Failed() []int64 { return m.excuses.failed }
