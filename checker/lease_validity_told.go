package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Told says how soon the holders heard of it whose holds ended under them: another was granted the lock, or a release,
// an extension or the lock itself said that the hold is lost. Times count from when the hold was lost: from the
// earliest of the other's grant, the fault that made servers forget it, and the end of the lease by its last renewal. A
// time in which the holder's process was paused is left out.
type Told struct {
	Notice
	// Faults has the same by fault, for those that were in force when a hold was lost; only if there were several.
	Faults []FaultNotice `json:"faults,omitempty"`
}

// FaultNotice is the notice of holds that were lost while a fault was in force.
type FaultNotice struct {
	Fault int64 `json:"fault"` // its place in Header.Faults
	Notice
}

// Notice is how soon some holders were told.
type Notice struct {
	Count int64 `json:"count"` // holds that were lost, of workers that lived
	Never int64 `json:"never"` // their holders heard nothing before they gave the lock back
	// Unknown are those who were told, and of whom it is not known since when: the lock does not say when it renewed.
	Unknown int64 `json:"unknown,omitempty"`
	// Of those who were told: by a signal of the lock, or an extension that failed.
	P50 *int64 `json:"p50_ns"`
	P99 *int64 `json:"p99_ns"` // null below a hundred
	Max *int64 `json:"max_ns"`
	// Inside is the longest time in which a holder that was never told went on.
	Inside int64 `json:"inside_ns,omitempty"`
	Lease  int64 `json:"lease_ns"` // the longest that was asked for

	after []int64 // how soon each of them was told, in order; not kept in files
}

// Add takes in what another run showed. Faults of different runs are not told apart.
func (t *Told) Add(o *Told) {
	t.Count, t.Never, t.Unknown = t.Count+o.Count, t.Never+o.Never, t.Unknown+o.Unknown
	t.Inside, t.Lease, t.Faults = max(t.Inside, o.Inside), max(t.Lease, o.Lease), nil
	if o.Max != nil && (t.Max == nil || *o.Max > *t.Max) {
		t.Max = o.Max
	}
	t.after = slices.Concat(t.after, o.after)
	slices.Sort(t.after)
	t.quantiles()
}

// quantiles are of all who were told. There are none if some of these are from a file.
func (n *Notice) quantiles() {
	n.P50, n.P99 = nil, nil
	told := len(n.after)
	if told == 0 || int64(told) < n.Count-n.Never-n.Unknown {
		return
	}
	if n.P50 = &n.after[(told-1)/2]; told >= 100 {
		n.P99 = &n.after[(told*99+99)/100-1]
	}
}

// loss is a hold that was lost under its holder.
type loss struct {
	fault int64 // -1 = none
	told  bool
	known bool          // since when it was lost
	after time.Duration // until it was told, or gave the lock back
}

// heard finds the holds that were lost under their holders; nil for a lock that neither renews leases nor tells of
// losses.
func (l *leases) heard() *Told {
	signals := slices.ContainsFunc(l.c.holds, func(h hold) bool { return h.Lost != history.Forever })
	if !l.c.Claims.Renews && !signals {
		return nil
	}
	l.extends = slices.ContainsFunc(l.c.Ops, func(op history.Op) bool { return op.Kind == history.Extend })
	var all []loss
	for _, holds := range l.c.byKey {
		byGrant := clone(&l.c.scratch, holds)
		slices.SortFunc(byGrant, func(a, b int32) int { return int(l.c.holds[a].Return - l.c.holds[b].Return) })
		for k, n := range byGrant {
			if h := &l.c.holds[n]; h.Outcome == history.OK {
				if x, lost := l.lost(h, l.next(h, byGrant[k+1:])); lost {
					all = append(all, x)
				}
			}
		}
	}
	t := &Told{Notice: l.sum(all)}
	byFault := map[int64][]loss{}
	for _, x := range all {
		byFault[x.fault] = append(byFault[x.fault], x)
	}
	for _, fault := range slices.Sorted(maps.Keys(byFault)) {
		if len(byFault) > 1 && fault >= 0 {
			t.Faults = append(t.Faults, FaultNotice{fault, l.sum(byFault[fault])})
		}
	}
	return t
}

// next is the first grant to another worker that excludes a hold, of those that follow; Forever if its holder was gone
// by then.
func (l *leases) next(h *hold, later []int32) time.Duration {
	for _, n := range later {
		o := &l.c.holds[n]
		if o.Return >= l.gone(h) {
			break
		}
		if o.Outcome == history.OK && o.Worker != h.Worker && l.c.clash(h.Permits, o.Permits) &&
			plus(o.Return, l.c.slack(h.Process, o.Process)) < l.gone(h) {
			return o.Return
		}
	}
	return history.Forever
}

// gone is when the holder gives its hold back, or dies.
func (l *leases) gone(h *hold) time.Duration { return min(h.Crashed, h.back()) }

// lost tells whether a hold was lost under its holder, when another was granted the lock at a moment, or never.
func (l *leases) lost(h *hold, other time.Duration) (x loss, lost bool) {
	heard, end := h.Lost, l.gone(h)
	if heard >= end {
		heard = history.Forever
	}
	proved := min(heard, other) // by then it was lost
	if h.Release >= 0 && h.ending == gone && h.Crashed == history.Forever {
		proved = min(proved, h.releaseReturn)
	}
	if proved == history.Forever || h.Crashed <= proved {
		return x, false
	}
	at := min(other, proved)
	x.known = other == at
	if over := l.assured(h); over <= at && (len(l.c.extends(h)) > 0 || l.extends || !l.c.Claims.Renews) {
		at, x.known = over, true
	}
	x.fault = -1
	if w := l.c.forgot(h, at); w != nil && w.from < at {
		at, x.known = max(w.from, h.Return), true
	}
	if x.known = x.known || l.extends; !x.known {
		return x, true
	}
	for i := range l.c.windows {
		if w := &l.c.windows[i]; w.fault && w.from <= at && at <= w.to {
			x.fault = l.c.Ops[w.op].Value
		}
	}
	x.told = heard != history.Forever
	to := end
	if x.told {
		to = heard
	}
	x.after = max(to-at-l.c.stillFor(h.Process, at, to), 0)
	return x, true
}

func (l *leases) sum(all []loss) Notice {
	t := Notice{Count: int64(len(all)), Lease: int64(l.c.ttl)}
	var told []int64
	for _, x := range all {
		if !x.known {
			t.Unknown++
		} else if x.told {
			told = append(told, int64(x.after))
		} else {
			t.Never++
			t.Inside = max(t.Inside, int64(x.after))
		}
	}
	if slices.Sort(told); len(told) > 0 {
		t.after, t.Max = told, &told[len(told)-1]
	}
	t.quantiles()
	return t
}

// Text says how soon holders were told, in seconds and in leases.
func (t *Told) Text() string {
	if t == nil || t.Count == 0 {
		return ""
	}
	text := human.Quantity(t.Count, "hold") + " lost under a living holder: "
	if t.Max == nil {
		text += "none told in a known time"
	} else {
		text += "told after "
		for _, q := range []struct {
			of   *int64
			name string
		}{{t.P50, "(p50)"}, {t.P99, "(p99)"}} {
			if q.of != nil {
				text += fmt.Sprintf("%s %s, ", human.Duration(time.Duration(*q.of)), q.name)
			}
		}
		text += human.Duration(time.Duration(*t.Max)) + " at most"
		if t.Lease > 0 {
			text += fmt.Sprintf(" (%s leases)", human.Number(float64(*t.Max)/float64(t.Lease)))
		}
	}
	if text += fmt.Sprintf(", %d never", t.Never); t.Never > 0 {
		text += fmt.Sprintf(", which went on for up to %s", human.Duration(time.Duration(t.Inside)))
	}
	if t.Unknown > 0 {
		text += fmt.Sprintf(", %d lost at an unknown time", t.Unknown)
	}
	return text
}
