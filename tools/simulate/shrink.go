package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"hammerlock/history"
)

// shrink drops operations while the judge's answer stays wrong in the same way. The history of a wrong lock may lose
// any operation, because the proofs hold for the rest. The history of a right lock may lose only whole visits, refused
// tries, or all page views. If it lost anything else, the right lock would look wrong.
func shrink(r *result) *history.History {
	wrong := func(h *history.History) bool {
		n := result{pair: r.pair, broken: r.broken, h: h}
		n.proofs, n.answered = read(h).prove(), r.ask(h)
		if len(r.hidden) > 0 && len(n.fails) > 0 {
			n.hidden = hide(h)
		}
		if n.bad() != r.bad() {
			return false
		}
		return r.bad() != "accused" || slices.Equal(n.fails, r.fails)
	}
	h := *r.h
	for again := true; again; {
		again = false
		for _, gone := range pieces(&h, r.pair.wrong == none, r.fails) {
			fewer := h
			fewer.Ops = slices.DeleteFunc(slices.Clone(h.Ops), func(op history.Op) bool { return gone[op.ID] })
			if len(fewer.Ops) < len(h.Ops) && wrong(&fewer) {
				h, again = fewer, true
			}
		}
	}
	if numbered := renumber(&h); wrong(numbered) {
		return numbered
	}
	return &h
}

// pieces are the sets of operations to drop together, larger ones first.
func pieces(h *history.History, right bool, fails []string) (list []map[history.ID]bool) {
	visits, views := map[history.ID]map[history.ID]bool{}, map[history.ID]bool{}
	seen := map[history.ID]bool{}
	for i := range h.Ops {
		op := &h.Ops[i]
		switch op.Kind {
		case history.Load, history.Store, history.Final:
			views[op.ID] = true
			if op.Kind != history.Final {
				seen[op.Seen] = true
			}
		case history.Acquire:
			seen[op.Seen] = true
		}
		hold := cmp.Or(op.Hold, op.ID)
		if visits[hold] == nil {
			visits[hold] = map[history.ID]bool{}
		}
		visits[hold][op.ID] = true
	}
	waits := func(f string) bool { return strings.HasPrefix(f, "liveness") || strings.HasPrefix(f, "fairness") }
	if list = append(list, views); right && slices.ContainsFunc(fails, waits) {
		return list // any holder or client may have kept others waiting
	}
	for _, id := range slices.Sorted(maps.Keys(visits)) {
		set, alone := visits[id], false
		for i := range h.Ops {
			if op := &h.Ops[i]; set[op.ID] {
				alone = alone || op.Worker < 0 || op.Kind == history.Crash || seen[op.ID]
			}
		}
		if !right || !alone {
			list = append(list, set)
		}
	}
	if !right {
		for i := range h.Ops {
			list = append(list, map[history.ID]bool{h.Ops[i].ID: true})
		}
	}
	return list
}

// renumber gives the operations of each lane the numbers 1, 2, 3 and so on, as in a file.
func renumber(h *history.History) *history.History {
	lanes, numbers, names := map[int]int{}, map[int]uint64{}, map[history.ID]history.ID{}
	for i := range h.Ops {
		lanes[h.Ops[i].ID.Lane()] = 0
	}
	for i, lane := range slices.Sorted(maps.Keys(lanes)) {
		lanes[lane] = i
	}
	order := make([]*history.Op, len(h.Ops))
	for i := range h.Ops {
		order[i] = &h.Ops[i]
	}
	slices.SortFunc(order, func(a, b *history.Op) int { return cmp.Compare(a.ID, b.ID) })
	for _, op := range order {
		lane := lanes[op.ID.Lane()]
		numbers[lane]++
		names[op.ID] = history.ID(lane+1)<<40 | history.ID(numbers[lane])
	}
	n := *h
	n.Ops = slices.Clone(h.Ops)
	for i := range n.Ops {
		op := &n.Ops[i]
		op.ID, op.Hold, op.Seen = names[op.ID], names[op.Hold], names[op.Seen]
	}
	return &n
}
