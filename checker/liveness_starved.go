package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// withheld blames periods longer than the bound in which the wanted permits of a semaphore were certainly free, but
// tries were refused. Servers cannot have kept these permits for a worker.
func (l *livenessCheck) withheld(left []stretch) {
	if len(left) == 0 {
		return
	}
	var free []stretch
	always := make([][]period, l.keys)
	for _, s := range left {
		always[s.key] = []period{{0, l.end}}
	}
	l.idle(always, func(h *hold) period { // a hold may have begun as soon as it was requested
		w := l.kept(h)
		if w.from < w.to {
			w.from = h.Call
		}
		return w
	}, func(s stretch) { free = append(free, s) })
	first, last := make([]int32, len(left)), make([]int32, len(left)) // indices in Ops, plus one
	for i := range l.Ops {
		op := &l.Ops[i]
		if op.Kind != history.Acquire || op.Outcome != history.Failed || op.Reason != history.Busy || op.Key < 0 ||
			!l.served(op.Permits) {
			continue
		}
		if n := l.within(left, op); n >= 0 && l.within(free, op) >= 0 {
			if last[n] = int32(i) + 1; first[n] == 0 {
				first[n] = int32(i) + 1
			}
		}
	}
	for n := range left {
		if first[n] == 0 {
			continue
		}
		a, b := &l.Ops[first[n]-1], &l.Ops[last[n]-1]
		if p := (period{a.Call, b.Return}); l.dies(p) {
			l.accuse(history.Stuck, []history.Op{*a, *b},
				fmt.Sprintf("page %d: from %s to %s %d of %d permits were free again and again, "+
					"and were refused all the same, as %s did; at most %s are explained",
					left[n].key, clock(p.from), clock(p.to), l.wanted, l.Claims.Permits, who(b.Worker),
					human.Duration(l.bound)))
		}
	}
}

// starved finds writers that waited for longer than a lease and the bound, while a reader that came at least a lease
// later was granted the lock. A writer keeps its place while it tries again within a lease: see wait. If the lock does
// not claim to let writers in, such writers are only counted.
func (l *livenessCheck) starved() {
	if !l.Claims.Readers {
		return
	}
	writers, readers := map[int32][]wait{}, map[int32][]wait{}
	l.Case.waits(func(w *wait) {
		if w.key >= 0 && w.permits == 0 && w.queued != history.Forever && w.asked-w.queued > l.lease+l.bound {
			writers[w.key] = history.Append(&l.scratch, writers[w.key], *w)
		}
	})
	if len(writers) == 0 {
		return
	}
	l.Case.waits(func(w *wait) {
		if w.permits > 0 && w.hold >= 0 && len(writers[w.key]) > 0 {
			readers[w.key] = history.Append(&l.scratch, readers[w.key], *w)
		}
	})
	for _, key := range slices.Sorted(maps.Keys(writers)) {
		// The list come is sorted by first call. first[i] is the index of the reader that was granted first
		// among come[i:].
		list, come := writers[key], readers[key]
		slices.SortFunc(come, func(a, b wait) int { return cmp.Compare(a.start, b.start) })
		first := make([]int, len(come))
		for i := len(come) - 1; i >= 0; i-- {
			if first[i] = i; i+1 < len(come) && come[first[i+1]].stop < come[i].stop {
				first[i] = first[i+1]
			}
		}
		slack := l.anySlack()
		for i := range list {
			w := &list[i]
			n, _ := slices.BinarySearchFunc(come, w.queued+l.lease+slack, func(r wait, t time.Duration) int {
				return cmp.Compare(r.start, t+1)
			})
			if n < len(come) && come[first[n]].stop+slack < w.asked {
				l.passedOver(w, &come[first[n]])
			}
		}
	}
}

func (l *livenessCheck) passedOver(w, reader *wait) {
	if !l.Claims.Writers || l.displaced.meets(w.queued, w.asked) {
		l.misses["writers passed over by readers"]++
		return
	}
	if l.counts[history.Starved] > 0 {
		l.accuse(history.Starved, nil) // only the first one is described
		return
	}
	l.accuse(history.Starved, l.passed(w.queued, w, reader),
		fmt.Sprintf("page %d: %s, a writer, was refused at %s and still at %s; %s, a reader, "+
			"came at %s and was granted the lock at %s",
			w.key, who(w.worker), clock(w.queued), clock(w.asked), who(reader.worker), clock(reader.start),
			clock(reader.stop)))
}
