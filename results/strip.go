package results

import (
	"time"

	"hammerlock/history"
)

// ribbon is what a worker did in the last seconds, in a ring of cells.
type ribbon struct {
	cells [StripCells]Cell
	head  int64 // number of the newest cell

	tried   time.Duration // first try of the current wait
	waiting bool
	hold    history.ID // 0 = none
	page    int32
	from    time.Duration // of the hold
	until   time.Duration // of its lease, as far as its holder was told
	drawn   time.Duration // the hold or wait was painted up to then
	ghost   time.Duration // a lease that nobody believes in ends then; 0 = none
	shown   time.Duration // the ghost was painted up to then
}

// paint marks what lies between two times.
func (s *ribbon) paint(from, to time.Duration, mark Cell) {
	if to <= from {
		to = from + 1
	}
	first, last := int64(max(from, 0)/StripStep), int64((to-1)/StripStep)
	s.advance(last)
	for n := max(first, s.head-StripCells+1); n <= last; n++ {
		s.cells[n%StripCells] |= mark
	}
}

// advance makes room up to cell n.
func (s *ribbon) advance(n int64) {
	if n-s.head >= StripCells {
		s.cells = [StripCells]Cell{}
		s.head = n
	}
	for s.head < n {
		s.head++
		s.cells[s.head%StripCells] = 0
	}
}

// show copies the n cells up to the one that ends at or after a time.
func (s *ribbon) show(end int64, n int) []Cell {
	cells := make([]Cell, n)
	for i := range cells {
		if k := end - int64(n) + 1 + int64(i); k >= 0 && k <= s.head && k > s.head-StripCells {
			cells[i] = s.cells[k%StripCells]
		}
	}
	return cells
}

// ribbon paints an operation.
func (v *Viewer) ribbon(op *history.Op) {
	if op.Worker < 0 || int(op.Worker) >= len(v.strips) {
		return
	}
	s := &v.strips[op.Worker]
	switch op.Kind {
	case history.Acquire:
		v.tried(op, s)
	case history.Extend:
		if op.Outcome == history.OK && s.hold != 0 && (op.Hold == s.hold || op.Hold == 0) && op.Until != 0 {
			s.until = op.Until
		}
	case history.Release:
		if op.Hold != s.hold || op.Value > 0 && op.Outcome == history.OK {
			return
		}
		s.end(op.Call)
		if op.Outcome == history.Unknown {
			v.haunt(op.Worker, op.Call)
		}
	case history.Crash:
		if s.hold != 0 {
			s.end(op.Call)
			v.haunt(op.Worker, op.Call)
		}
		s.waiting = false
	case history.End:
		if s.waiting {
			s.paint(s.drawn, op.Return, Waited)
			s.waiting = false
		}
	}
}

// tried paints a try for the lock.
func (v *Viewer) tried(op *history.Op, s *ribbon) {
	if !s.waiting {
		s.waiting, s.tried, s.drawn = true, op.Call, op.Call
	}
	if op.Return == history.Forever {
		return
	}
	s.paint(s.drawn, op.Return, Waited)
	s.drawn = op.Return
	if op.Outcome != history.OK || op.Hold != op.ID && op.Hold != 0 {
		return
	}
	if w, ok := v.ghosts[op.Key]; ok {
		v.strips[w].haunted(op.Return)
		v.strips[w].ghost = 0
		delete(v.ghosts, op.Key)
	}
	s.waiting, s.hold, s.page, s.from, s.until = false, op.ID, op.Key, op.Return, op.Until
	if s.until == 0 {
		s.until = history.Forever
	}
}

// end paints the rest of a hold.
func (s *ribbon) end(at time.Duration) {
	s.held(at)
	s.hold = 0
}

// held paints the hold up to a time.
func (s *ribbon) held(to time.Duration) {
	s.paint(s.drawn, min(to, s.until), Held)
	if to > s.until {
		s.paint(max(s.until, s.drawn), to, Overtaken)
	}
	s.drawn = to
}

// haunt leaves the lease of a hold behind that nobody gave back.
func (v *Viewer) haunt(worker int32, from time.Duration) {
	s := &v.strips[worker]
	if s.until > from {
		s.ghost, s.shown = s.until, from
		v.ghosts[s.page] = worker
	}
}

func (s *ribbon) haunted(now time.Duration) {
	if s.ghost == 0 {
		return
	}
	s.paint(min(s.shown, s.ghost), min(now, s.ghost), Ghost)
	if s.shown = now; now >= s.ghost {
		s.ghost = 0
	}
}

// now paints what goes on up to now and says what it is.
func (s *ribbon) now(worker int, now time.Duration, stopped bool) Strip {
	r := Strip{Worker: worker, Page: s.page}
	s.haunted(now)
	switch {
	case s.hold != 0:
		s.held(now)
		r.Mode, r.Since, r.Lease = Held, now-s.from, max(s.until-now, 0)
		if s.until == history.Forever {
			r.Lease = history.Forever
		} else if now > s.until {
			r.Mode = Overtaken
		}
	case s.waiting:
		s.paint(s.drawn, now, Waited)
		s.drawn = now
		r.Mode, r.Since = Waited, now-s.tried
	case s.ghost != 0:
		r.Mode, r.Lease = Ghost, s.ghost-now
	}
	if stopped {
		s.paint(now-StripStep, now, Stopped)
		r.Mode |= Stopped
	}
	s.advance(int64(now / StripStep))
	return r
}
