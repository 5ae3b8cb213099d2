package measure

import (
	"time"

	"hammerlock/history"
)

// strips has the pictures of what all workers did in the last minute.
type strips struct {
	workers []strip
	orphans map[int32]int32 // page -> worker whose hold is over, although servers still have its lease
}

func newStrips(workers int) strips { return strips{make([]strip, workers), map[int32]int32{}} }

// overlap marks a period in which both workers held the same lock.
func (all *strips) overlap(workers [2]int32, from, to time.Duration) {
	for _, w := range workers {
		s := &all.workers[w]
		s.paint(from, to, Overlap)
		s.overlap = max(s.overlap, to)
	}
}

// strip is the picture of what one worker did in the last minute. Its cells form a ring.
type strip struct {
	cells [StripCells]Cell
	head  int64 // number of the newest cell; the first cell of the run has the number 0
	keeps bool  // for a replay: keep everything as pieces, and do not use cells
	kept  []piece

	tried   time.Duration // first try of the wait in progress
	waiting bool
	hold    history.Holding
	painted time.Duration // the current hold or wait is shown up to this time
	overlap time.Duration // end of the latest period in which another worker held the same lock; 0 = none

	orphanEnd     time.Duration // end of the lease of a hold that ended without a release; 0 = none
	orphanPainted time.Duration // that lease is shown up to this time
}

// piece is a period in which a worker did one thing, such as waiting.
type piece struct {
	from, to time.Duration
	mark     Cell
}

func (s *strip) paint(from, to time.Duration, mark Cell) {
	if to <= from {
		to = from + 1
	}
	if s.keeps {
		if last := len(s.kept) - 1; last >= 0 && s.kept[last].mark == mark && s.kept[last].to == from {
			s.kept[last].to = to
		} else {
			s.kept = append(s.kept, piece{from, to, mark})
		}
		return
	}
	first, last := int64(max(from, 0)/StripStep), int64((to-1)/StripStep)
	s.advance(last)
	for n := max(first, s.head-StripCells+1); n <= last; n++ {
		s.cells[n%StripCells].add(time.Duration(n)*StripStep, StripStep, from, to, mark)
	}
}

// advance makes n the number of the newest cell, unless the newest number is greater. Skipped cells become empty.
func (s *strip) advance(n int64) {
	if n-s.head >= StripCells {
		s.cells = [StripCells]Cell{}
		s.head = n
	}
	for s.head < n {
		s.head++
		s.cells[s.head%StripCells] = 0
	}
}

// The method last returns a copy of n consecutive cells. The argument end is the number of the last of them.
func (s *strip) last(n int, end int64) []Cell {
	cells := make([]Cell, n)
	first := end - int64(n) + 1
	for k := max(first, 0, s.head-StripCells+1); k <= min(end, s.head); {
		at := int(k % StripCells)
		copied := copy(cells[k-first:], s.cells[at:min(StripCells, at+int(min(end, s.head)-k)+1)])
		k += int64(copied)
	}
	return cells
}

func (all *strips) observe(op *history.Op) {
	if op.Worker < 0 || int(op.Worker) >= len(all.workers) {
		return
	}
	s := &all.workers[op.Worker]
	if op.Kind == history.Acquire && op.Outermost() {
		s.tries(op)
	}
	switch s.hold.Observe(op) {
	case history.Granted:
		all.endOrphan(op.Key, op.Return)
		s.waiting = false
	case history.GivenBack:
		if s.paintHold(op.Call); op.Outcome == history.Unknown {
			all.beginOrphan(op.Worker, op.Call)
		}
	case history.Died:
		s.paintHold(op.Call)
		all.beginOrphan(op.Worker, op.Call)
	case history.Left:
		s.paintHold(op.Return)
	}
	if s.waiting && (op.Kind == history.Crash || op.Kind == history.End) {
		if op.Kind == history.End {
			s.paint(s.painted, op.Return, Waited)
		}
		s.waiting = false
	}
}

func (s *strip) tries(op *history.Op) {
	if !s.waiting {
		s.waiting, s.tried, s.painted = true, op.Call, op.Call
	}
	if op.Return != history.Forever {
		s.paint(s.painted, op.Return, Waited)
		s.painted = op.Return
	}
}

// paintHold shows the current hold in the picture, up to the given time. A part after the end of the lease is marked
// as expired.
func (s *strip) paintHold(to time.Duration) {
	until := s.hold.Believed()
	s.paint(s.painted, min(to, until), Held)
	if to > until {
		s.paint(max(until, s.painted), to, Expired)
	}
	s.painted = to
}

// beginOrphan records that a hold of the worker ended without a release, so that servers keep its lease for a while.
func (all *strips) beginOrphan(worker int32, from time.Duration) {
	if s := &all.workers[worker]; s.hold.Until > from {
		s.orphanEnd, s.orphanPainted = s.hold.Until, from
		all.orphans[s.hold.Key] = worker
	}
}

// endOrphan ends the orphaned lease of a page, because another worker was granted the lock.
func (all *strips) endOrphan(page int32, at time.Duration) {
	if worker, ok := all.orphans[page]; ok {
		s := &all.workers[worker]
		s.paintOrphan(at)
		s.orphanEnd = 0
		delete(all.orphans, page)
	}
}

func (s *strip) paintOrphan(now time.Duration) {
	if s.orphanEnd == 0 {
		return
	}
	s.paint(min(s.orphanPainted, s.orphanEnd), min(now, s.orphanEnd), Orphaned)
	if s.orphanPainted = now; now >= s.orphanEnd {
		s.orphanEnd = 0
	}
}

// lateBy is a limit of age. If the last known action of a worker is older, the present action is shown as unknown.
const lateBy = 250 * time.Millisecond

// moment is the time for which strips are shown, with what is known about it.
type moment struct {
	now, known time.Duration // the time itself, and the time up to which all operations have arrived
	stopped    bool          // a fault has stopped the worker
}

// The method now returns the picture of a worker at the given moment. It first adds the action in progress, as far as
// it is known.
func (s *strip) now(worker int, at moment) Strip {
	r := Strip{Worker: worker, Page: s.hold.Key}
	if at.known > s.orphanPainted {
		s.paintOrphan(at.known)
	}
	switch {
	case s.hold.ID != 0:
		if at.known > s.painted {
			s.paintHold(at.known)
		}
		until := s.hold.Believed()
		r.Mode, r.Since, r.Lease = Held, at.now-s.hold.From, max(until-at.now, 0)
		if until == history.Forever {
			r.Lease = history.Forever
		} else if at.now > until {
			r.Mode = Expired
		}
	case s.waiting:
		if at.known > s.painted {
			s.paint(s.painted, at.known, Waited)
			s.painted = at.known
		}
		r.Mode, r.Since = Waited, at.now-s.tried
	case s.orphanEnd != 0:
		r.Mode, r.Lease = Orphaned, s.orphanEnd-at.now
	}
	if at.now-at.known > lateBy {
		r.Mode, r.Since, r.Lease = NotKnown, at.now-at.known, 0
	}
	if at.stopped {
		s.paint(at.now-StripStep, at.now, Stopped)
		r.Mode |= Stopped
	}
	s.advance(int64(at.now / StripStep))
	return r
}
