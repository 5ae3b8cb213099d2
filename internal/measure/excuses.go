package measure

import (
	"time"

	"hammerlock/history"
)

// excuses computes an upper bound for the page views that a correct lock may lose because holders were paused for
// longer than checker.Spare. A holder that stores too late overwrites what others have stored meanwhile.
type excuses struct {
	bears     time.Duration // a shorter pause does not make a holder late; 0 = the lock has no leases
	processes []paused      // by number
	late      int64         // page views that late holders may have overwritten
	failed    []int64       // the node of each failure without a planned fault
}

// paused is a process, with its workers and how many page views they had stored at some moments.
type paused struct {
	has     []bool // by worker
	workers int
	stored  int64
	recent  []mark // some moments in ascending order, at least everyMark apart
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

// observe counts an operation with an answer.
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

// paused counts the views that holders in a paused process may have overwritten: one each, plus those that other
// processes stored during the pause.
func (e *excuses) paused(gap *history.Op) {
	e.late += int64(e.process(gap.Process).workers)
	for n := range e.processes {
		if p := &e.processes[n]; n != int(gap.Process) {
			e.late += p.stored - p.before(gap.Call)
		}
	}
}

// stores notes that a worker runs in the process.
func (p *paused) stores(worker int32) {
	for int(worker) >= len(p.has) {
		p.has = append(p.has, false)
	}
	if !p.has[worker] {
		p.has[worker] = true
		p.workers++
	}
}

// before is the number of page views that a process had stored at a moment, or slightly before it.
func (p *paused) before(t time.Duration) (stored int64) {
	for _, m := range p.recent {
		if m.at > t {
			break
		}
		stored = m.stored
	}
	return stored
}

// Overwritten is how many page views late holders may have overwritten at most.
func (m *Meter) Overwritten() int64 { return m.excuses.late }

// Failed lists the numbers of the nodes that failed without a planned fault, one entry for each failure.
func (m *Meter) Failed() []int64 { return m.excuses.failed }
