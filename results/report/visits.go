package report

import (
	"time"

	"hammerlock/history"
)

// stripVisit is a visit as the strip shows it. A time is history.Forever if the event did not happen.
type stripVisit struct {
	worker, key int32
	id          history.ID // ID of the granted Acquire
	tries       int32
	from        time.Duration // call of the first try
	call, grant time.Duration // call and return of the granted try
	load        time.Duration // return of the load
	storeCall   time.Duration
	storeReturn time.Duration
	value       int64 // stored value
	relCall     time.Duration
	relReturn   time.Duration
	until       time.Duration // end of the lease, as far as the holder knew
	lost        time.Duration // when the holder learned that it had lost the lock, or crashed
	end         time.Duration
	store       history.Outcome
	release     history.Outcome
	outcome     history.Outcome // outcome of the visit
	reason      history.Reason
	crashed     bool
	unknown     bool // one of the tries had no reply
	live        bool // the visit is in progress
}

// held returns the time at which the worker stopped using the lock.
func (v *stripVisit) held() time.Duration { return min(v.relCall, v.end) }

// believed returns the time at which the worker should have stopped using the lock. It may have gone on until held.
func (v *stripVisit) believed() time.Duration { return min(v.held(), v.until, v.lost) }

// visitReader makes visits of operations, which must come in the order of their returns.
type visitReader struct {
	workers []stripVisit
	holds   []history.Holding
	granted func(*stripVisit) // called when a visit gets the lock; the visit goes on
	done    func(*stripVisit)
	last    time.Duration // latest time so far
}

// maxRows limits the number of workers that a strip shows.
const maxRows = 1 << 12

func (r *visitReader) observe(op *history.Op) {
	r.last = max(r.last, op.Latest())
	if op.Worker < 0 || op.Worker >= maxRows {
		return
	}
	for int(op.Worker) >= len(r.workers) {
		r.workers, r.holds = append(r.workers, stripVisit{}), append(r.holds, history.Holding{})
	}
	v, h := &r.workers[op.Worker], &r.holds[op.Worker]
	change := h.Observe(op)
	if change == history.Prolonged || change == history.Told {
		v.until, v.lost = h.Until, h.Lost
	}
	switch op.Kind {
	case history.Acquire:
		if op.Outermost() { // not a re-entry
			r.acquire(v, op)
		}
	case history.Load:
		if op.Hold == v.id {
			v.load = op.Return
		}
	case history.Store:
		if op.Hold == v.id || op.Hold == 0 {
			v.storeCall, v.storeReturn, v.store, v.value = op.Call, op.Return, op.Outcome, op.Value
		}
	case history.Release:
		if change == history.GivenBack {
			v.relCall, v.relReturn, v.release = op.Call, op.Return, op.Outcome
		}
	case history.Crash:
		v.lost, v.crashed = min(v.lost, op.Call), true
		r.close(v, op.Call)
	case history.End:
		v.outcome, v.reason = op.Outcome, op.Reason
		r.close(v, op.Return)
	}
}

func (r *visitReader) acquire(v *stripVisit, op *history.Op) {
	if v.live && v.grant != history.Forever {
		r.close(v, min(op.Call, v.relReturn)) // this history does not record the ends of visits
	}
	if !v.live {
		*v = stripVisit{
			worker: op.Worker, key: op.Key, from: op.Call, live: true, outcome: history.Unknown,
			call: history.Forever, grant: history.Forever, load: history.Forever, storeCall: history.Forever,
			storeReturn: history.Forever, relCall: history.Forever, relReturn: history.Forever,
			until: history.Forever, lost: history.Forever, end: history.Forever,
		}
	}
	v.tries++
	switch op.Outcome {
	case history.Unknown:
		v.unknown = true
	case history.OK:
		v.id, v.call, v.grant = op.ID, op.Call, op.Return
		if op.Until > 0 {
			v.until = op.Until
		}
		r.granted(v)
	}
}

func (r *visitReader) close(v *stripVisit, at time.Duration) {
	if !v.live {
		return
	}
	v.end, v.live = at, false
	r.done(v)
	v.id = 0
}
