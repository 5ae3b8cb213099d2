package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// Stream judges during a run, in bounded memory. It finds two workers that rely on the same lock at the same time, and
// two acknowledged stores that replace the same page view. Its findings are certain; the checkers of the whole history
// find more. A single goroutine gives it the operations, in the order of their returns.
type Stream struct {
	// Overlap, if not nil, is called for every two workers that relied on the lock at the same time, with the period.
	Overlap func(workers [2]int32, from, to time.Duration)

	excludes bool
	service  bool // a service is visited: it is judged only at the end
	clocks   *history.Agreement
	now      time.Duration // all operations that had returned by then were seen

	lines          []*line                // by key; nil if the page had no hold yet
	holds          map[history.ID]*belief // holds whose end is unknown
	tokens         map[uint64]*belief     // the same by token, for extensions that have no hold ID
	waiting        int                    // number of beliefs in all lines
	free           []*belief
	crashed        []history.ID  // holds whose workers were killed, perhaps during a release that was not observed yet
	incompleteFrom time.Duration // some holds after this time were not kept; Forever = all were
	updates        chains
	found          []Violation
	count          int64
}

// Violation is a violation that was found during the run.
type Violation struct {
	Checker string // name of the checker that also finds it, in the whole history
	Text    string
	At      time.Duration // time of the violation
	Seen    time.Duration // time of its proof
	Workers [2]int32
	Ops     [2]history.ID // the two grants, or the two stores
}

const (
	keptViolations = 64      // further violations are only counted
	mostBeliefs    = 1 << 16 // number of holds that may wait for the end of an earlier one
)

// belief is the period in which a holder relied on its hold: from its grant to the first of release call, deadline,
// loss signal and crash.
type belief struct {
	id       history.ID
	token    uint64
	worker   int32
	key      int32
	process  int16
	settled  bool
	shared   bool
	call     time.Duration
	from, to time.Duration
	extended time.Duration // call of the last extension that succeeded
	lost     time.Duration
	crashed  time.Duration // when its worker was killed
}

// line has a page's beliefs in the order of their grants, from the first one that has not ended.
type line struct {
	queue  []*belief
	fronts [2]front // [0]: exclusive holds; [1]: shared holds
	n      int32
}

// front has the beliefs that end latest so far, for exclusive or for shared holds.
type front struct {
	far     frontier
	beliefs []belief // the beliefs of the frontier
}

// NewStream makes a Stream for a run with the given header.
func NewStream(h *history.Header) *Stream {
	return &Stream{excludes: h.Claims.Excludes, service: h.Service, holds: map[history.ID]*belief{},
		tokens: map[uint64]*belief{}, incompleteFrom: history.Forever, updates: newChains(),
		clocks: &h.Bounds.Agreement}
}

// Observe adds an operation.
func (s *Stream) Observe(op *history.Op) {
	if op.Return != history.Forever {
		s.now = max(s.now, op.Return)
	}
	if s.service {
		return
	}
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK && op.Outermost() {
			s.grant(op)
		}
	case history.Extend:
		s.extend(op)
	case history.Release:
		if b := s.holds[op.Hold]; b != nil && !(op.Value > 0 && op.Outcome == history.OK) {
			s.settle(b, op.Call)
		}
	case history.Lose:
		if b := s.holds[op.Hold]; b != nil {
			b.lost = min(b.lost, op.Return)
		}
	case history.Crash:
		for _, b := range s.holds {
			if b.worker == op.Worker && b.call <= op.Call {
				b.crashed = min(b.crashed, op.Call)
				s.crashed = append(s.crashed, b.id)
			}
		}
	case history.Load, history.Store:
		if first := s.updates.observe(op); first != nil {
			s.report(Violation{Checker: lostUpdates.Name, At: op.Return, Seen: s.now,
				Workers: [2]int32{first.worker, op.Worker}, Ops: [2]history.ID{first.child, op.ID}}, func() string {
				return fmt.Sprintf("%s and %s both replaced page view %d of page %d: one is lost", who(first.worker),
					who(op.Worker), op.Value-1, op.Key)
			})
		}
	}
}

// UpTo tells the stream that it has observed every operation that was called before the given time and has a return:
// see history.Merge.Drain.
func (s *Stream) UpTo(now time.Duration) {
	s.now = max(s.now, now)
	s.crashed = slices.DeleteFunc(s.crashed, func(id history.ID) bool {
		b := s.holds[id]
		if b != nil && b.crashed >= now {
			return false
		}
		if b != nil {
			s.settle(b, b.crashed)
		}
		return true
	})
}

// SafeUpTo is the time up to which everything was judged.
func (s *Stream) SafeUpTo() time.Duration {
	if !s.excludes {
		return s.now
	}
	safe := min(s.now, s.incompleteFrom)
	for _, l := range s.lines {
		if l != nil && len(l.queue) > 0 {
			safe = min(safe, l.queue[0].from)
		}
	}
	return safe
}

// Violations returns the number of proved violations, and the first ones. The slice only grows.
func (s *Stream) Violations() (int64, []Violation) { return s.count, s.found }

// report counts a violation, and keeps the first ones with a text.
func (s *Stream) report(v Violation, text func() string) {
	if s.count++; len(s.found) < keptViolations {
		v.Text = text()
		s.found = append(s.found, v)
	}
}

func (s *Stream) grant(op *history.Op) {
	l := s.line(op.Key)
	if s.waiting >= mostBeliefs {
		s.incompleteFrom = min(s.incompleteFrom, op.Return)
		return
	}
	b := s.belief()
	*b = belief{id: op.ID, token: op.Token, worker: op.Worker, key: op.Key, process: op.Process, shared: op.Permits > 0,
		call: op.Call, from: op.Return,
		to: op.Until, lost: history.Forever, crashed: history.Forever}
	if b.to == 0 {
		b.to = history.Forever // the holder has no deadline
	}
	s.holds[b.id] = b
	if b.token != 0 {
		s.tokens[b.token] = b
	}
	l.queue = append(l.queue, b)
	s.waiting++
}

func (s *Stream) line(key int32) *line {
	if more := int(key) + 1 - len(s.lines); more > 0 {
		s.lines = append(s.lines, make([]*line, more)...)
	}
	if s.lines[key] == nil {
		far := newFronts(s.clocks)
		s.lines[key] = &line{fronts: [2]front{{far: far[0]}, {far: far[1]}}}
	}
	return s.lines[key]
}

func (s *Stream) extend(op *history.Op) {
	b := s.holds[op.Hold]
	if b == nil && op.Hold == 0 && op.Token != 0 {
		b = s.tokens[op.Token]
	}
	switch {
	case b == nil:
	case op.Outcome == history.OK && op.Until != 0 && op.Call >= b.extended:
		b.to, b.extended = op.Until, op.Call
	case op.Outcome == history.Failed && op.Reason == history.Lost:
		b.lost = min(b.lost, op.Return)
	}
}

// settle ends a belief not later than the given time, and judges the beliefs that waited for this end.
func (s *Stream) settle(b *belief, at time.Duration) {
	b.settled, b.to = true, min(b.to, b.lost, b.crashed, at)
	delete(s.holds, b.id)
	if b.token != 0 && s.tokens[b.token] == b {
		delete(s.tokens, b.token)
	}
	if l := s.lines[b.key]; l.queue[0] == b {
		s.judge(l)
	}
}

// judge compares the beliefs at the head of a line, one after the other, until it comes to one whose end is not known
// yet. It finds the same overlaps as the exclusion checker.
func (s *Stream) judge(l *line) {
	n := 0
	for ; n < len(l.queue) && l.queue[n].settled; n++ {
		b := l.queue[n]
		if b.from < b.to {
			l.n++
			now := reach{l.n, b.process, b.from, b.to}
			own, against := &l.fronts[0], l.fronts[:]
			if b.shared {
				own, against = &l.fronts[1], l.fronts[:1]
			}
			for i := range against {
				if first, certain := against[i].far.collide(now); first >= 0 && certain {
					s.overlap(&against[i], first, b)
					break
				}
			}
			own.add(now, b)
		}
		s.free = append(s.free, b)
	}
	s.waiting -= n
	l.queue = l.queue[:copy(l.queue, l.queue[n:])]
}

func (l *front) add(now reach, b *belief) {
	switch i := l.far.add(now); {
	case i == len(l.beliefs):
		l.beliefs = append(l.beliefs, *b)
	case i >= 0:
		l.beliefs[i] = *b
	}
}

func (s *Stream) overlap(l *front, first int32, b *belief) {
	a := &l.beliefs[slices.IndexFunc(l.far.reach, func(r reach) bool { return r.hold == first })]
	if s.Overlap != nil {
		s.Overlap([2]int32{a.worker, b.worker}, b.from, min(a.to, b.to))
	}
	if !s.excludes {
		return // the lock promised nothing
	}
	s.report(Violation{Checker: Exclusion.Name, At: b.from, Seen: s.now,
		Workers: [2]int32{a.worker, b.worker}, Ops: [2]history.ID{a.id, b.id}}, func() string {
		return fmt.Sprintf("%s was granted page %d at %s while %s, granted at %s, believed in it until %s",
			who(b.worker), b.key,
			clock(b.from), who(a.worker), clock(a.from), clock(a.to))
	})
}

// belief returns memory for a new belief, which may be that of an old one.
func (s *Stream) belief() *belief {
	n := len(s.free)
	if n == 0 {
		return new(belief)
	}
	b := s.free[n-1]
	s.free = s.free[:n-1]
	return b
}
