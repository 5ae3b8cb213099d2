package checker

import (
	"time"

	"hammerlock/history"
)

// findLogs lists what a partial history has of each process.
func (c *Case) findLogs() {
	type worker struct {
		process int16
		last    time.Duration
		open    bool
		died    time.Duration
	}
	workers := make([]worker, c.workers)
	for i := range workers {
		workers[i] = worker{process: -1, died: history.Forever}
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		switch {
		case op.Worker < 0:
		case op.Kind == history.Crash: // it may be recorded by another process
			workers[op.Worker].died = op.Return
		case op.Return == history.Forever:
			workers[op.Worker].process, workers[op.Worker].open = op.Process, true
		default:
			workers[op.Worker].process, workers[op.Worker].last = op.Process, op.Return
		}
	}
	c.logs = map[int16]log{}
	for _, w := range workers {
		if w.process < 0 {
			continue
		}
		l, ok := c.logs[w.process]
		if !ok {
			l.idle = true
		}
		l.last, l.died = max(l.last, w.last), max(l.died, w.died)
		l.idle = l.idle && (w.open || w.died != history.Forever)
		c.logs[w.process] = l
	}
}

// recorded is the time up to which it is known what every process did. If the record of a process was cut off earlier,
// the process may have gone on.
func (c *Case) recorded() time.Duration {
	end := c.end()
	for _, l := range c.logs {
		if !l.idle {
			end = min(end, l.last)
		}
	}
	return end
}

// unsent lists the times in which the lock may belong to a process that was killed before it had sent all of its
// record. The first such time begins with the last record. Each ends when the leases of the killed workers have ended.
func (c *Case) unsent() (list []period) {
	for _, l := range c.logs {
		if l.died != history.Forever {
			list = append(list, period{l.last, c.outlives(l.died)})
		}
	}
	return list
}

// outlives is the time until which a server may keep the lock for a worker that was dead by the given moment.
func (c *Case) outlives(died time.Duration) time.Duration {
	if c.lease == 0 || !c.Claims.Expires && !c.Session {
		return history.Forever
	}
	return plus(died, c.lease)
}

// cutShort is the time until which a server may keep a hold whose release is not recorded because the record of its
// worker was cut off.
func (c *Case) cutShort(h *hold) time.Duration {
	return c.outlives(h.Crashed)
}
