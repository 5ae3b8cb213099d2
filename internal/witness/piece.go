package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// Lock is the key of a lock, with the number of its database.
type Lock struct {
	DB  int
	Key string
}

// Piece is a part of the recorded operations. Join makes a history of consecutive pieces.
type Piece struct {
	Number  int
	To      time.Duration        // time at which the piece ends
	Ops     []history.Op         // their Key is an index in Locks
	Guesses []history.Op         // the operations that only a connection attributes to a client, made Unknown
	Unheld  map[history.ID]int32 // releases in earlier pieces -> the worker, which held nothing
	Notes   map[history.ID]string
	Locks   []Lock
	Workers int
	Shared  bool // connections are shared by several holders
	Sums    Tallies
	Blind   []history.Op // incidents that have not ended
}

// Rest returns everything that is still in memory, as a piece.
func (r *Reader) Rest() *Piece {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.piece(len(r.ops), nil)
}

// End returns the last piece and ends the reading. See History.
func (r *Reader) End() *Piece {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(false)
	return r.piece(len(r.ops), nil)
}

// piece makes a piece of the operations before an index. It leaves out the operations whose indices are in stays, since
// they stay in memory.
func (r *Reader) piece(upto int, stays map[int]bool) *Piece {
	p := &Piece{Number: r.pieces, To: r.now, Notes: map[history.ID]string{}, Workers: len(r.workers),
		Shared: r.Improper > 0 && !r.promised(), Sums: r.Tallies, Unheld: maps.Clone(r.unheld)}
	s := scribe{ops: slices.Clone(r.ops[:upto]), doubted: r.doubted, victims: r.victims}
	s.undecide(false, r.promised())
	guesses := map[int]bool{}
	for _, n := range r.guesses {
		guesses[n] = true
	}
	names, places := map[int32]Lock{}, map[int32]int32{}
	for s, n := range r.pages {
		names[n] = Lock{s.db, s.key}
	}
	place := func(op history.Op) history.Op {
		if op.Key < 0 {
			return op
		}
		n, known := places[op.Key]
		if !known {
			n = int32(len(p.Locks))
			p.Locks, places[op.Key] = append(p.Locks, names[op.Key]), n
		}
		op.Key = n
		return op
	}
	p.Ops = s.ops[:0] // the same memory is safe: each operation is read before it is overwritten
	for n, op := range s.ops {
		if stays[n] {
			continue
		}
		if note := r.notes[op.ID]; note != "" {
			p.Notes[op.ID] = note
		}
		op = place(op)
		if p.Ops = append(p.Ops, op); guesses[n] {
			unknown(&op, r.victims[n])
			p.Guesses = append(p.Guesses, op)
		}
	}
	for _, op := range r.blind {
		p.Blind = append(p.Blind, place(op))
	}
	return p
}

type noted struct {
	history.Op
	note string
}

// Join makes a history of consecutive pieces. It has the operations on the locks for which of(lock) is true, and
// those of the history with, which the suite itself has recorded.
func Join(with *history.History, pieces []*Piece, of func(Lock) bool) *history.History {
	last, numbers := &Piece{}, map[Lock]int32{}
	for _, p := range pieces {
		if p.To >= last.To {
			last = p
		}
	}
	var all []noted
	add := func(p *Piece, op history.Op, note string) {
		if op.Key >= 0 {
			lock := p.Locks[op.Key]
			if !of(lock) {
				return
			}
			n, known := numbers[lock]
			if !known {
				n = int32(len(numbers))
				numbers[lock] = n
			}
			op.Key = n
		}
		all = append(all, noted{op, note})
	}
	unheld := map[history.ID]int32{}
	for _, p := range pieces {
		maps.Copy(unheld, p.Unheld)
	}
	for _, p := range pieces {
		unsure := map[history.ID]history.Op{}
		for _, op := range p.Guesses {
			unsure[op.ID] = op
		}
		for _, op := range p.Ops {
			if as, is := unsure[op.ID]; is && last.Shared {
				op = as
			}
			if w, is := unheld[op.ID]; is {
				op.Hold, op.Token, op.Worker = 0, 0, w
			}
			add(p, op, p.Notes[op.ID])
		}
	}
	for _, op := range last.Blind {
		add(last, incidentOf(int(op.Value), op.Key, op.Call, max(last.To, op.Call)), blindNote)
	}
	for _, op := range with.Ops {
		op.Hold = 0
		all = append(all, noted{op, with.Notes[op.ID]})
	}
	ops, notes := relaid(all, last.Workers, len(pieces) > 0 && pieces[0].Number == 0)
	h := finished(&with.Header, ops, notes, counts{last.Workers, len(numbers), &last.Sums})
	h.Names = pageNames(numbers, func(l Lock) string { return l.Key })
	h.Partial = cmp.Or(with.Partial, h.Partial)
	return h
}

// relaid numbers the operations as in a whole history. It leaves out operations whose grant is missing. If the history
// is not whole, it also leaves out refused tries before the first known grant, because the holder is unknown.
func relaid(all []noted, workers int, whole bool) ([]history.Op, map[history.ID]string) {
	slices.SortStableFunc(all, func(a, b noted) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Kind, b.Kind))
	})
	s := scribe{workers: make([]virtual, workers), notes: map[history.ID]string{}}
	to, granted := map[history.ID]history.ID{}, map[int32]time.Duration{}
	for _, op := range all {
		id, first := op.ID, op.Kind == history.Acquire && op.Hold == op.ID
		since, known := granted[op.Key]
		switch {
		case first && op.Outcome == history.Failed && !whole && (!known || op.Call < since):
			continue
		case first:
			if op.Hold = 0; !known && op.Outcome != history.Failed {
				granted[op.Key] = op.Latest()
			}
		case op.Hold != 0:
			if op.Hold = to[op.Hold]; op.Hold == 0 {
				continue
			}
		}
		n := s.append(op.Op)
		if first {
			to[id] = s.ops[n].ID
		}
		if op.note != "" {
			s.notes[s.ops[n].ID] = op.note
		}
	}
	return s.ops, s.notes
}
