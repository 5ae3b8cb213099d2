package measure

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"hammerlock/internal/witness"
	"hammerlock/results"
)

const (
	hotKept  = 512 // number of locks that are counted
	hotShown = 10
	hotHalf  = 10 * time.Minute // after this time, the weight of a request has fallen by half
)

// hotLocks finds the most requested locks of a program that is watched for any length of time. Its memory is bounded:
// it counts hotKept locks, and a further lock takes the place of the least requested one, whose weight it inherits.
// This is the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, ICDT 2005), with weights that decay.
type hotLocks struct {
	byKey map[string]*hotLock
	heap  coldest
	next  time.Duration // time at which all weights will be halved
}

type hotLock struct {
	key             string
	since           time.Duration
	grants, refused int64
	held            time.Duration
	heat            float64
	at              int // index in the heap
}

// coldest is a heap of locks. Its first element has the smallest weight.
type coldest []*hotLock

func (c coldest) Len() int           { return len(c) }
func (c coldest) Less(i, j int) bool { return c[i].heat < c[j].heat }
func (c coldest) Swap(i, j int)      { c[i], c[j] = c[j], c[i]; c[i].at, c[j].at = i, j }
func (c *coldest) Push(x any)        { *c = append(*c, x.(*hotLock)) }
func (c *coldest) Pop() any          { return nil } // Pop is never called, because locks are only replaced

// asked counts a request for a lock, and returns the lock's entry.
func (h *hotLocks) asked(n *witness.Notice) *hotLock {
	for ; n.At >= h.next; h.next += hotHalf {
		for _, x := range h.heap {
			x.heat /= 2
		}
	}
	x := h.byKey[n.Key]
	switch {
	case x != nil:
	case len(h.heap) < hotKept:
		x = &hotLock{key: n.Key, since: n.At - n.For, at: len(h.heap)}
		h.byKey[n.Key] = x
		heap.Push(&h.heap, x)
	default:
		x = h.heap[0]
		delete(h.byKey, x.key)
		*x = hotLock{key: n.Key, since: n.At - n.For, heat: x.heat}
		h.byKey[n.Key] = x
	}
	x.heat++
	heap.Fix(&h.heap, x.at)
	return x
}

func (h *hotLocks) top(now time.Duration, open []witness.Notice, alone bool) (all []results.HotLock) {
	waiting, held := map[string]int64{}, map[string]time.Duration{}
	for _, o := range open {
		if o.Kind == witness.Waits {
			waiting[o.Key]++
		} else if x := h.byKey[o.Key]; x != nil {
			held[o.Key] += min(o.For, now-x.since)
		}
	}
	hottest := slices.SortedFunc(slices.Values(h.heap), func(a, b *hotLock) int {
		return cmp.Or(cmp.Compare(b.heat, a.heat), cmp.Compare(a.key, b.key))
	})
	for _, x := range hottest[:min(hotShown, len(hottest))] {
		one := results.HotLock{Key: x.key, Since: int64(x.since), Grants: x.grants,
			Held: float64(x.held+held[x.key]) / float64(max(now-x.since, 1))}
		if !alone {
			refused, waits := x.refused, waiting[x.key]
			one.Refused, one.Waiting = &refused, &waits
		}
		all = append(all, one)
	}
	return all
}
