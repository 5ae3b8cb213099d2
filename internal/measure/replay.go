package measure

import (
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

// Replay makes snapshots of a saved run, for any time within the run.
type Replay struct {
	history *history.History
	run     *results.Run
	end     time.Duration   // return of the last operation with a return
	never   time.Duration   // call of the first operation without a return
	roles   []Roles         // all role changes in the history
	moments []time.Duration // times of the violations
	strips  strips          // what each worker did in the whole history
	meter   *Meter
	viewer  *Viewer
	next    int
	now     time.Duration
}

// NewReplay prepares a replay of a history. The argument run is the record of the run; nil if only the history
// exists.
func NewReplay(h *history.History, run *results.Run) *Replay {
	r := &Replay{history: h, run: run, never: history.Forever, roles: rolesOf(h)}
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Return == history.Forever {
			r.never = min(r.never, op.Call)
		} else {
			r.end = max(r.end, op.Return)
		}
	}
	r.survey()
	r.rewind()
	return r
}

// End returns the time of the last event in the history.
func (r *Replay) End() time.Duration { return r.end }

// Violation returns the time of the next violation after the given time. If the argument step is negative, it returns
// the time of the previous violation. The result found is false if no such violation exists. Violations that follow
// each other quickly share one time.
func (r *Replay) Violation(from time.Duration, step int) (at time.Duration, found bool) {
	for _, t := range r.moments {
		if step < 0 && t < from || step >= 0 && t > from && !found {
			at, found = t, true
		}
	}
	return at, found
}

// survey reads the whole history once. It collects what the workers did, and the times of the violations.
func (r *Replay) survey() {
	r.strips = newStrips(r.history.Header.Workers)
	stream, count := checker.NewStream(&r.history.Header), int64(0)
	stream.Overlap = r.strips.overlap
	for i := range r.strips.workers {
		r.strips.workers[i].keeps = true
	}
	var first, last time.Duration // when the first and the last violation that share a time were proved
	for i := range r.history.Ops {
		op := &r.history.Ops[i]
		r.strips.observe(op)
		if op.Return == history.Forever {
			continue // operations without a return are the last in the history
		}
		stream.Observe(op)
		stream.UpTo(min(op.Return, r.never))
		n, _ := stream.Violations()
		if n == count {
			continue
		}
		if count == 0 || op.Return-last >= oneEvent {
			r.moments, first = append(r.moments, op.Return), op.Return
		} else if op.Return-first < aroundAfter {
			r.moments[len(r.moments)-1] = op.Return
		}
		count, last = n, op.Return
	}
	for i := range r.strips.workers {
		r.strips.workers[i].now(i, moment{now: r.end, known: r.end})
	}
}

// lane returns what a worker did between two times, divided into the given number of cells.
func (r *Replay) lane(worker int, from, to time.Duration, cells int) []Cell {
	all, step := make([]Cell, cells), max((to-from+time.Duration(cells)-1)/time.Duration(cells), 1)
	for _, p := range r.strips.workers[worker].kept {
		for k := int64(max(p.from-from, 0) / step); k < int64(cells) && from+time.Duration(k)*step < p.to; k++ {
			all[k].add(from+time.Duration(k)*step, step, p.from, p.to, p.mark)
		}
	}
	return all
}

func (r *Replay) rewind() {
	h := &r.history.Header
	o := Options{Workers: h.Workers, Callers: h.Callers, Keys: h.Keys, To: r.end, Excludes: h.Claims.Alone(),
		Backoff: h.Retry}
	head := Head{Topology: h.Topology, Lock: h.Lock, Workers: h.Workers, Keys: h.Keys, Command: h.Command, Number: 1,
		Of: 1}
	for _, f := range h.Faults {
		head.Faults = append(head.Faults, f.Name+f.At)
	}
	if run := r.run; run != nil {
		o.From, o.OpenLoop = time.Duration(run.Warmup), run.Rate > 0
		o.To = o.From + time.Duration(run.Measured)
		head.Rate, head.Label, head.Interactive = run.Rate, run.Label, run.Interactive
		for _, p := range run.Phases {
			head.Phases = append(head.Phases, Span{Name: p.Name, From: time.Duration(p.From), To: time.Duration(p.To)})
		}
	}
	r.meter = NewMeter(o)
	r.viewer = NewViewer(r.meter, head, *h, func(op *history.Op) (i history.Injection, words string) {
		if op.Kind == history.Fault {
			i = h.Faults[op.Value]
		}
		return i, r.history.Notes[op.ID]
	})
	r.next, r.now = 0, 0
}

// At returns the snapshot at the given time. If the time is earlier than that of the last call, the replay starts
// again from the beginning.
func (r *Replay) At(now time.Duration) *Snapshot {
	now = min(max(now, 0), r.end)
	if now < r.now {
		r.rewind()
	}
	ops := r.history.Ops
	for ; r.next < len(ops); r.next++ {
		op := &ops[r.next]
		if op.Return > now && !(now == r.end && op.Return == history.Forever) {
			break
		}
		r.meter.Observe(op)
		r.viewer.Observe(op)
		if op.Return != history.Forever && (r.next == 0 || op.Return-r.now >= aroundAfter) {
			r.now = op.Return
			r.look()
		}
	}
	r.now = now
	s := r.look()
	if r.run != nil {
		s.Cost, s.Generator = r.run.Cost, r.run.Generator
	}
	s.To, s.Roles, s.Lane = r.end, rolesUpTo(r.roles, now), r.lane
	return s
}

func (r *Replay) look() *Snapshot {
	r.viewer.UpTo(min(r.now, r.never))
	return r.viewer.Snapshot(r.now, "replay", nil)
}
