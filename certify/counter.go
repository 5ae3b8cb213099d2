package certify

import (
	"cmp"
	"fmt"
	"slices"
)

// follow checks the chain of a page's stores, from the final read back to the first store.
func (h *History) follow(f *fact) error {
	end, chain := h.finals[f.Page], []*op(nil)
	if end == nil || end.Seen != f.Chain {
		return fmt.Errorf("page %d does not end with %s", f.Page, f.Chain)
	}
	for o := h.ops[end.Seen]; o != nil; o = h.ops[o.Seen] {
		if o.Kind != "store" || o.Key != f.Page || o.place != 0 {
			return fmt.Errorf("%s is no store of page %d, or in its chain twice", o.ID, f.Page)
		}
		o.place = -1
		if chain = append(chain, o); o.Seen != "" && h.ops[o.Seen] == nil || o.Value == 0 && o.Outcome != "ok" {
			return fmt.Errorf("it is not known what %s replaced", o.ID)
		}
	}
	for i, o := range chain {
		o.place = len(chain) - i
	}
	if len(chain) != f.Stores {
		return fmt.Errorf("the chain of page %d has %d stores", f.Page, len(chain))
	}
	return nil
}

// chained checks all loads and stores by means of the chains: every acknowledged store is in its chain, and every load
// saw the right store and value.
func chained(h *History, _ []*op) bool {
	first := map[string]*op{} // first load of each hold
	for _, o := range h.list {
		load := (o.Kind == "load" || o.Kind == "final") && o.Outcome == "ok"
		if o.Kind == "store" && o.Outcome == "ok" && o.place == 0 || load && o.Seen != "" && h.ops[o.Seen] == nil ||
			(load || o.Kind == "store" && o.place > 0) && misread(h, []*op{o, h.ops[o.Seen]}) {
			return false
		}
		if a := h.ops[o.Hold]; load && a != nil && a.Permits > 0 {
			if f := first[o.Hold]; f != nil && f.Seen != o.Seen && h.used(a, o) {
				return false
			}
			first[o.Hold] = o
		}
	}
	return h.named && h.grows(func(o *op) (gives, needs int64) {
		switch {
		case o.Kind == "store" && o.Outcome == "ok":
			return int64(o.place), 0
		case o.Kind == "load" && o.Outcome == "ok":
			if s := h.ops[o.Seen]; s != nil {
				return 0, int64(s.place) + 1
			}
			return 0, 1
		}
		return 0, 0
	})
}

// ordered checks that the tokens of all grants grow.
func ordered(h *History, _ []*op) bool {
	given := map[[2]int64]bool{}
	for _, o := range h.list {
		if o.Kind == "acquire" && h.acquire(o) == o && o.Outcome == "ok" {
			token := [2]int64{int64(o.Key), o.Fence}
			if o.Fence <= 0 || given[token] {
				return false
			}
			given[token] = true
		}
	}
	return h.grows(func(o *op) (gives, needs int64) {
		switch {
		case o.Kind == "acquire" && h.acquire(o) == o && o.Outcome == "ok":
			return o.Fence, o.Fence
		}
		return 0, 0
	})
}

// grows reports whether values, such as fencing tokens, only grow on each page. The function `of` returns two values
// of an operation: the one that it gives, and the one that it needs; 0 = none. The needed value must be greater than
// every value given by an operation that was answered before the call.
func (h *History) grows(of func(*op) (gives, needs int64)) bool {
	type place struct{ page, process int32 }
	most, answered := map[place]int64{}, slices.Clone(h.list)
	slices.SortFunc(answered, func(a, b *op) int { return cmp.Compare(a.Return, b.Return) })
	near, far := 0, 0
	for _, o := range h.list {
		for ; near < len(answered) && answered[near].Return < o.Call; near++ {
			a := answered[near]
			gives, _ := of(a)
			most[place{a.Key, a.Process}] = max(most[place{a.Key, a.Process}], gives)
		}
		for ; far < len(answered) && plus(answered[far].Return, h.Bounds.Slack) < o.Call; far++ {
			gives, _ := of(answered[far])
			most[place{answered[far].Key, -1}] = max(most[place{answered[far].Key, -1}], gives)
		}
		if _, needs := of(o); needs > 0 && max(most[place{o.Key, o.Process}], most[place{o.Key, -1}]) >= needs {
			return false
		}
	}
	return true
}

func replaced(h *History, o []*op) bool {
	return len(o) == 2 && h.fits("store", o...) && o[0].Outcome == "ok" && o[1].Outcome == "ok" && o[0].Seen != "" &&
		o[0].Seen == o[1].Seen
}

// outside proves that a page ended without an acknowledged store. The read at the end names a store, or has a number
// that no store had.
func outside(h *History, o []*op) bool {
	if len(o) != 1 || !h.fits("store", o...) || o[0].Outcome != "ok" || o[0].place != 0 || h.finals[o[0].Key] == nil {
		return false
	}
	end := h.finals[o[0].Key]
	return end.Seen != "" || !slices.ContainsFunc(h.list, func(x *op) bool {
		return x.Kind == "store" && x.Key == end.Key && x.Value == end.Value
	})
}

func stale(h *History, o []*op) bool {
	seen := &op{}
	if len(o) == 2 && o[1].Seen != "" {
		seen = h.ops[o[1].Seen]
	}
	return len(o) == 2 && h.fits("store", o[0]) && h.fits("load", o[1]) && o[0].Key == o[1].Key &&
		o[0].Outcome == "ok" && o[1].Outcome == "ok" && o[0].place > 0 && seen != nil &&
		seen.place < o[0].place && h.before(o[0], o[1])
}

func changed(h *History, o []*op) bool {
	return len(o) == 2 && h.fits("load", o...) && o[0].Hold == o[1].Hold && h.ops[o[0].Hold] != nil &&
		h.ops[o[0].Hold].Permits > 0 && o[0].Outcome == "ok" && o[1].Outcome == "ok" && o[0].Seen != o[1].Seen &&
		h.used(h.ops[o[0].Hold], o[0]) && h.used(h.ops[o[0].Hold], o[1])
}

// used tells whether a reader relied on an answer: one that heeds its deadline uses no answer that came after it.
func (h *History) used(a, load *op) bool {
	_, to := h.believed(a)
	return !h.Heeds || load.Return <= to
}

func misread(h *History, o []*op) bool {
	if len(o) != 2 || o[1] == nil || o[1].Kind != "store" || o[1].Key != o[0].Key || o[0].Seen != o[1].ID {
		return false
	}
	value := o[1].Value
	if o[0].Kind == "store" {
		value++
	}
	return o[1].Outcome == "failed" || o[0].Outcome != "failed" && o[0].Value != value &&
		(o[0].Kind == "load" || o[0].Kind == "final" || o[0].Kind == "store")
}

func regressed(h *History, o []*op) bool {
	if len(o) == 1 {
		return h.fits("acquire", o...) && h.acquire(o[0]) == o[0] && o[0].Outcome == "ok" && o[0].Fence == 0
	}
	if len(o) == 3 {
		return h.outran(o[0], o[1], o[2])
	}
	if len(o) != 2 || o[0].Key != o[1].Key || o[0].Kind != o[1].Kind || o[0].Outcome != "ok" || o[1].Outcome != "ok" {
		return false
	}
	if o[0].Kind == "store" {
		return h.Fenced && o[0].Fence > o[1].Fence && o[1].Fence > 0 && (o[1].Seen == o[0].ID || h.before(o[0], o[1]))
	}
	return h.fits("acquire", o...) && h.acquire(o[0]) == o[0] && h.acquire(o[1]) == o[1] && o[0].Fence > 0 &&
		(o[0].Fence == o[1].Fence || o[1].Fence < o[0].Fence && h.before(o[0], o[1]))
}

// outran proves that two exclusive holds were granted in the opposite order of their tokens. The first hold, with the
// greater token, was given back before the answer to the second one, which was certainly alive then or later.
func (h *History) outran(first, back, second *op) bool {
	sole := h.Claims.Excludes && h.Claims.Owned && h.Sites < 2 && first.Permits == 0 && second.Permits == 0
	alive := second.Return
	if alive >= plus(second.Call, h.least(second.TTL)) { // a later answer must show that its lease had not ended
		alive = forever
		for o := second.rest; o != nil; o = o.rest {
			if (o.Kind == "extend" || o.Kind == "release") && o.Outcome == "ok" && o.Call >= second.Return {
				alive = min(alive, o.Return)
			}
		}
	}
	for _, w := range h.windows {
		if w.forgets && w.from <= plus(alive, h.Bounds.Slack) && plus(w.to, h.Bounds.Slack) >= min(first.Call,
			second.Call) {
			return false
		}
	}
	return sole && h.fits("acquire", first, second) && h.acquire(first) == first && h.acquire(second) == second &&
		first.Outcome == "ok" && second.Outcome == "ok" && back.Kind == "release" && back.Outcome == "ok" &&
		back.Hold == first.ID && plus(back.Return, h.slack(back, second)) <= second.Return &&
		alive < forever && second.Fence > 0 && second.Fence < first.Fence
}
