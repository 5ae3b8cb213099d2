package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

type period struct{ from, to time.Duration }

// meets tells whether two periods overlap or touch.
func (w period) meets(from, to time.Duration) bool { return from <= w.to && to >= w.from }

// spans are disjoint periods in order.
type spans []period

// newSpans sorts periods and joins those that overlap.
func newSpans(list []period) (s spans) {
	slices.SortFunc(list, func(a, b period) int { return cmp.Compare(a.from, b.from) })
	for _, p := range list {
		if n := len(s); n > 0 && s[n-1].to >= p.from {
			s[n-1].to = max(s[n-1].to, p.to)
		} else {
			s = append(s, p)
		}
	}
	return s
}

// of finds the spans that overlap a period.
func (s spans) of(p period) spans {
	first, _ := slices.BinarySearchFunc(s, p.from, func(w period, from time.Duration) int {
		return cmp.Compare(w.to, from)
	})
	end := first
	for end < len(s) && s[end].from <= p.to {
		end++
	}
	return s[first:end]
}

func (s spans) meets(from, to time.Duration) bool { return len(s.of(period{from, to})) > 0 }

// without lists the parts of a period outside of the spans.
func (s spans) without(p period) (rest []period) {
	for _, w := range s.of(p) {
		if w.from > p.from {
			rest = append(rest, period{p.from, w.from})
		}
		p.from = w.to
	}
	if p.from < p.to {
		rest = append(rest, p)
	}
	return rest
}

// length is the total length of the parts of a period that no span covers.
func (s spans) length(p period) (sum time.Duration) {
	for _, r := range s.without(p) {
		sum += r.to - r.from
	}
	return sum
}

// reaching is a list of windows, sorted by beginning. last[i] is the window among all[0] to all[i] that ends last.
type reaching struct {
	all  []*window
	from []time.Duration
	last []*window
}

func newReaching(list []*window) (r reaching) {
	slices.SortStableFunc(list, func(a, b *window) int { return cmp.Compare(a.from, b.from) })
	r.all = list
	for i, w := range list {
		if i > 0 && r.last[i-1].to > w.to {
			w = r.last[i-1]
		}
		r.from, r.last = append(r.from, list[i].from), append(r.last, w)
	}
	return r
}

// find returns a window that was in force between two moments; nil if none exists.
func (r *reaching) find(since, by time.Duration) *window {
	n, found := slices.BinarySearch(r.from, by)
	for found && n < len(r.from) && r.from[n] == by {
		n++
	}
	if n == 0 || r.last[n-1].to < since {
		return nil
	}
	return r.last[n-1]
}

// between iterates over the windows that were in force between two moments, the one that began last first.
func (r *reaching) between(since, by time.Duration) func(yield func(*window) bool) {
	return func(yield func(*window) bool) {
		n, _ := slices.BinarySearchFunc(r.from, by, func(from, by time.Duration) int {
			if from <= by {
				return -1
			}
			return 1
		})
		for n--; n >= 0 && r.last[n].to >= since; n-- {
			if r.all[n].to >= since && !yield(r.all[n]) {
				return
			}
		}
	}
}

// window is a period in which something happened that the lock cannot be blamed for. It is a planned fault, or an
// unplanned event, such as a server that ended or a process that was paused. File case_excuse.go says what a
// window excuses.
type window struct {
	period
	op, heal int32 // indices in Ops; heal is -1 if it never ended
	name     string
	note     string
	effect   *history.Effect
	fault    bool // it was injected, or it is a role change that an injected fault explains
	failed   bool // it could not be injected, but may have had an effect
}
