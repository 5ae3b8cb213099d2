package fleet

import (
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// sender turns the records of an agent's workers into frames.
type sender struct {
	t     *task
	s     *crew.Session
	merge *history.Merge
	ops   []history.Op
	open  []history.Op // at the end: calls that never returned
	sent  time.Time
}

// run sends frames until the workers have ended, and then the rest. It takes no records while the spool
// is full, because too many frames are not written yet. Workers then wait for room in their lanes, and
// these waits are counted.
func (s *sender) run(worked <-chan struct{}) {
	next := time.Tick(drainEvery)
	for working := true; working; {
		select {
		case <-worked:
			working = false
			continue
		case <-next:
		}
		if s.t.spool.full() {
			continue
		}
		for _, lane := range s.s.Dead() {
			s.merge.Abandon(lane)
		}
		final := s.merge.Drain(s.take)
		if time.Since(s.sent) >= sendEvery {
			s.frame(final)
		}
	}
	s.merge.Flush(s.take)
	s.frame(history.Forever)
}

func (s *sender) take(op *history.Op) {
	if op.Return == history.Forever {
		s.open = append(s.open, *op)
		return
	}
	s.ops = append(s.ops, *op)
	if len(s.ops) >= frameOps {
		s.frame(op.Return)
	}
}

// frame sends all operations that were taken so far. They are complete up to upTo.
func (s *sender) frame(upTo time.Duration) {
	t := s.t
	if t.done() {
		return
	}
	all, _, _ := t.spool.state()
	f := frame{Kept: t.spool.kept(), Run: t.plan.Run, Agent: t.w.me.Epoch, Number: all + 1, UpTo: max(upTo, 0),
		Exchanges: t.exchanged(), Ops: s.ops, Open: s.open}
	if upTo != history.Forever {
		s.merge.Open(func(op *history.Op) { f.Open = append(f.Open, *op) })
	}
	b, err := f.put()
	if err != nil {
		t.giveUp(err.Error())
		return
	}
	t.spool.add(b)
	s.ops, s.sent = s.ops[:0], time.Now()
}
