package witness

import (
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// trim forgets the older half of the operations, and what belongs to grants in it, as if the reading had begun behind
// them: who has a lock is not known until it is granted again.
func (r *Reader) trim() {
	from := len(r.ops) / 2
	kept, to := map[history.ID]int{}, map[int]int{} // by acquire and by old place: the new place
	used, granted, marks := map[int32]bool{}, map[int32]bool{}, map[uint64]bool{}
	var ops []history.Op
	notes := map[history.ID]string{}
	for i, op := range r.ops[from:] {
		switch _, known := kept[op.Hold]; {
		case op.Kind == history.Acquire && op.Hold == op.ID:
			if op.Outcome == history.Failed && !granted[op.Key] {
				continue
			}
			kept[op.ID], granted[op.Key], marks[op.Token] = len(ops), true, true
		case op.Hold != 0 && !known:
			continue
		}
		if text := r.notes[op.ID]; text != "" {
			notes[op.ID] = text
		}
		to[from+i], used[op.Key] = len(ops), true
		ops = append(ops, op)
	}
	r.dropped += len(r.ops) - len(ops)
	r.ops, r.notes = slices.Clip(ops), notes
	holds := map[*hold]bool{}
	for _, h := range r.victims {
		holds[h] = true
	}
	for _, b := range r.books {
		for _, h := range b.holds {
			holds[h] = true
			if _, known := kept[h.id]; !known {
				b.seen = false
			}
			marks[history.Hash(h.token)], used[h.key] = true, true
		}
		for _, a := range b.acts {
			used[a.op.Key] = true
		}
	}
	for h := range holds {
		n, known := kept[h.id]
		if h.op = n; !known {
			h.op, h.id = -1, 0
		}
	}
	maps.DeleteFunc(r.grants, func(token string, n int) bool { return n == 1 && !marks[history.Hash(token)] })
	maps.DeleteFunc(r.known, func(id history.ID, _ bool) bool { _, is := kept[id]; return !is })
	r.moved(to)
	r.renumber(used)
}

// moved corrects the places of operations after some were forgotten.
func (r *Reader) moved(to map[int]int) {
	places := func(old []int) (all []int) {
		for _, n := range old {
			if at, is := to[n]; is {
				all = append(all, at)
			}
		}
		return all
	}
	r.guesses, r.phantom = places(r.guesses), places(r.phantom)
	victims := map[int]*hold{}
	for n, h := range r.victims {
		if at, is := to[n]; is {
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
	last := map[int]time.Duration{}
	for i := range r.ops {
		n := int(r.ops[i].ID>>40) - 1
		last[n] = max(last[n], r.ops[i].Return)
	}
	for _, v := range r.workers {
		for i := range v.lanes { // an operation without an answer keeps its lane while it is kept
			v.lanes[i].last = last[v.lanes[i].number]
		}
	}
}

// renumber gives the pages that are still used the first numbers.
func (r *Reader) renumber(used map[int32]bool) {
	to := map[int32]int32{}
	for s, n := range r.pages {
		if !used[n] {
			delete(r.pages, s)
			continue
		}
		to[n] = int32(len(to))
		r.pages[s] = to[n]
	}
	renumbered := func(key *int32) {
		if n, known := to[*key]; known {
			*key = n
		}
	}
	r.blind = slices.DeleteFunc(r.blind, func(op history.Op) bool { return op.Key >= 0 && !used[op.Key] })
	for _, ops := range [][]history.Op{r.ops, r.blind} {
		for i := range ops {
			renumbered(&ops[i].Key)
		}
	}
	for _, b := range r.books {
		for _, h := range b.holds {
			renumbered(&h.key)
		}
		for i := range b.acts {
			renumbered(&b.acts[i].op.Key)
		}
	}
}
