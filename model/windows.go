package model

import (
	"cmp"
	"slices"
	"time"
)

// windows has the windows of a page, sorted by start. The window last[i] is the one of list[:i+1] that ends last.
type windows struct {
	list  []Window
	place []int32 // index in Page.Windows
	last  []int32
	late  bool // some window may make leases longer
}

func newWindows(list []Window) (w windows) {
	for i := range list {
		w.place = append(w.place, int32(i))
		w.late = w.late || list[i].Late
	}
	slices.SortStableFunc(w.place, func(a, b int32) int { return cmp.Compare(list[a].From, list[b].From) })
	for i, n := range w.place {
		w.list = append(w.list, list[n])
		last := int32(i)
		if i > 0 && list[w.place[w.last[i-1]]].To > list[n].To {
			last = w.last[i-1]
		}
		w.last = append(w.last, last)
	}
	return w
}

// find returns a window that was open between two times, or -1.
func (w *windows) find(from, to time.Duration) int32 {
	n := w.before(to)
	if n == 0 || w.list[w.last[n-1]].To < from {
		return -1
	}
	return w.last[n-1]
}

// before counts the windows that begin at or before a time.
func (w *windows) before(t time.Duration) int {
	n, _ := slices.BinarySearchFunc(w.list, t, func(x Window, t time.Duration) int {
		if x.From <= t {
			return -1
		}
		return 1
	})
	return n
}

// between lists the windows that were open between two times.
func (w *windows) between(from, to time.Duration) (list []int32) {
	for n := w.before(to); n > 0 && w.list[w.last[n-1]].To >= from; n-- {
		if w.list[n-1].To >= from {
			list = append(list, int32(n-1))
		}
	}
	return list
}

// brings reports whether lost data may come back in a window.
func (w *Window) brings() bool { return w.Restores || w.Revives }

// cost returns what a loss in this window adds to the cost of a story.
func (w *Window) cost() Cost {
	if w.Planned {
		return oneFault + planned
	}
	return oneAccident
}
