package witness

import (
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// pieceTime is the time after which everything about an operation is known, so that a recorder can store it.
const pieceTime = roundBound

// pieceRoom is a capacity, in operations, that is never worth freeing.
const pieceRoom = 1 << 12

// pass removes operations from memory when there are too many. If a recorder stores them, it also removes those that
// are old enough.
func (r *Reader) pass() {
	n := 0
	if r.o.Dropped != nil && r.now-r.passed >= pieceTime {
		r.passed = r.now
		for n < len(r.ops) && r.ops[n].Latest() <= r.now-pieceTime {
			n++
		}
	}
	if len(r.ops) > r.o.Most {
		n = max(n, len(r.ops)-r.o.Most/2)
	}
	if n > 0 && r.o.Rolling {
		r.trim(n)
	}
}

// trim removes the operations before an index. Grants of current holds stay, because later events are judged by them.
// Later operations of other holds still refer to the removed grants: see relaid.
func (r *Reader) trim(from int) {
	stays := r.staying(from)
	if r.o.Dropped != nil {
		r.o.Dropped(r.piece(from, stays))
		r.pieces++
		clear(r.unheld)
	}
	to := make([]int, len(r.ops)) // old index -> new index; -1 = removed
	ids, used := map[history.ID]bool{}, make([]bool, len(r.pages))
	ops, notes := r.ops[:0], map[history.ID]string{} // in place, since the operations for the recorder were copied
	for i, op := range r.ops {
		if to[i] = -1; i < from && !stays[i] {
			continue
		}
		if op.Kind == history.Acquire && op.Hold == op.ID && len(r.known) > 0 {
			ids[op.ID] = true
		}
		if text := r.notes[op.ID]; text != "" {
			notes[op.ID] = text
		}
		if to[i] = len(ops); op.Key >= 0 {
			used[op.Key] = true
		}
		ops = append(ops, op)
	}
	first := r.dropped + from
	r.dropped += len(r.ops) - len(ops)
	if r.ops, r.notes = ops, notes; cap(ops) > 4*len(ops)+pieceRoom {
		r.ops = slices.Clone(ops) // the list has shrunk, so free its memory
	}
	holds, held := map[*hold]bool{}, map[uint64]bool{}
	for _, h := range r.victims {
		holds[h] = true
	}
	for _, b := range r.books {
		for _, h := range b.all() {
			holds[h], held[history.Hash(h.token)], used[h.key] = true, true, true
		}
		for _, a := range b.acts {
			used[a.op.Key] = true
		}
	}
	for h := range holds {
		if h.op >= 0 {
			h.op = to[h.op]
		}
	}
	maps.DeleteFunc(r.grants, func(mark uint64, g granted) bool {
		return g.times == 1 && g.last < first && !held[mark]
	})
	maps.DeleteFunc(r.known, func(id history.ID, _ bool) bool { return !ids[id] })
	r.moved(to)
	r.renumber(used)
}

// staying returns the indices of grants that must stay in memory: those of current holds that were not extended. If
// these are too many, it returns none.
func (r *Reader) staying(from int) map[int]bool {
	stays := map[int]bool{}
	for _, b := range r.books {
		for _, h := range b.holds {
			if h.op >= 0 && h.op < from && !h.closed && !h.ended && h.call == h.from && !r.Reentrant {
				stays[h.op] = true
			}
		}
	}
	if len(stays) > r.o.Most/4 {
		clear(stays)
	}
	return stays
}

// moved adjusts the indices of operations after some were removed.
func (r *Reader) moved(to []int) {
	places := func(old []int) (all []int) {
		for _, n := range old {
			if at := to[n]; at >= 0 {
				all = append(all, at)
			}
		}
		return all
	}
	r.guesses, r.phantom = places(r.guesses), places(r.phantom)
	victims := map[int]*hold{}
	for n, h := range r.victims {
		if at := to[n]; at >= 0 {
			victims[at] = h
		}
	}
	r.victims = victims
	for h, list := range r.doubted {
		if r.doubted[h] = places(list); len(r.doubted[h]) == 0 {
			delete(r.doubted, h)
		}
	}
	for _, s := range r.flights {
		s.ops = places(s.ops)
	}
	last := make([]time.Duration, len(r.lanes))
	for i := range r.ops {
		n := int(r.ops[i].ID>>40) - 1
		last[n] = max(last[n], r.ops[i].Return)
	}
	for _, v := range r.workers {
		for i := range v.lanes { // an operation without a reply blocks its lane for ever
			v.lanes[i].last = last[v.lanes[i].number]
		}
	}
}

func (r *Reader) renumber(used []bool) {
	r.edition++
	to, next := make([]int32, len(used)), int32(0)
	for s, n := range r.pages {
		if !used[n] {
			delete(r.pages, s)
			continue
		}
		to[n], r.pages[s] = next, next
		next++
	}
	renumbered := func(key *int32) {
		if *key >= 0 {
			*key = to[*key]
		}
	}
	r.blind = slices.DeleteFunc(r.blind, func(op history.Op) bool { return op.Key >= 0 && !used[op.Key] })
	for _, ops := range [][]history.Op{r.ops, r.blind} {
		for i := range ops {
			renumbered(&ops[i].Key)
		}
	}
	for _, b := range r.books {
		for _, h := range b.all() {
			renumbered(&h.key)
		}
		for i := range b.acts {
			renumbered(&b.acts[i].op.Key)
		}
	}
}
