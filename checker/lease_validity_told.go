package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Told says how soon holders learned that they had lost the lock. A hold is lost if another worker was granted the
// lock, or if a release, an extension or the lock itself reported the loss. Times count from the loss: the earliest of
// the other grant, the fault that made servers forget the hold, and the end of the lease by the last renewal. Pauses of
// the holder's process are left out.
type Told struct {
	Count int64 `json:"count"` // number of lost holds whose workers lived
	Never int64 `json:"never"` // number of these whose holders learned nothing until they released
	// Unknown is the number of lost holds with an unknown time of loss: the lock does not say when it renewed.
	Unknown int64 `json:"unknown,omitempty"`
	// P50 is the median time until holders were told, by a signal of the lock or by a failed extension; null if it
	// is unknown.
	P50 *int64 `json:"p50_ns"`
	P99 *int64 `json:"p99_ns"` // null if fewer than a hundred were told
	Max *int64 `json:"max_ns"`
	// Inside is the longest time for which a holder that learned nothing went on after the loss.
	Inside int64 `json:"inside_ns,omitempty"`
	Lease  int64 `json:"lease_ns"` // longest lease that was requested

	after []int64 // times until holders were told, sorted; not stored in files
}

// Add adds the holds of another run.
func (t *Told) Add(o *Told) {
	t.Count, t.Never, t.Unknown = t.Count+o.Count, t.Never+o.Never, t.Unknown+o.Unknown
	t.Inside, t.Lease = max(t.Inside, o.Inside), max(t.Lease, o.Lease)
	if o.Max != nil && (t.Max == nil || *o.Max > *t.Max) {
		t.Max = o.Max
	}
	t.after = slices.Concat(t.after, o.after)
	slices.Sort(t.after)
	t.quantiles()
}

// quantiles computes the quantiles. They are nil if the times of some holders are missing, because files do not store
// these times.
func (t *Told) quantiles() {
	t.P50, t.P99 = nil, nil
	told := len(t.after)
	if told == 0 || int64(told) < t.Count-t.Never-t.Unknown {
		return
	}
	if t.P50 = &t.after[(told-1)/2]; told >= 100 {
		t.P99 = &t.after[(told*99+99)/100-1]
	}
}

// loss is a hold that was lost before its holder released it.
type loss struct {
	told  bool
	known bool          // the time of the loss is known
	after time.Duration // time until the holder was told, or released
}

// heard finds the holds that were lost; nil for a lock that neither renews leases nor reports losses.
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
	return l.sum(all)
}

// next returns the time of the first later grant to another worker that the hold excludes. It returns Forever if the
// holder had released the hold, or had died, before that.
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

// gone is the time at which the holder releases, or dies.
func (l *leases) gone(h *hold) time.Duration { return min(h.Crashed, h.back()) }

// lost reports whether a hold was lost before its holder released it. The argument other is the time at which another
// worker was granted the lock, or Forever.
func (l *leases) lost(h *hold, other time.Duration) (x loss, lost bool) {
	heard, end := h.Lost, l.gone(h)
	if heard >= end {
		heard = history.Forever
	}
	proved := min(heard, other) // the lock had been lost by this time
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
	if w := l.c.forgot(h, at); w != nil && w.from < at {
		at, x.known = max(w.from, h.Return), true
	}
	x.known = x.known || l.extends
	x.told = heard != history.Forever
	to := end
	if x.told {
		to = heard
	}
	x.after = max(to-at-l.c.stillFor(h.Process, at, to), 0)
	return x, true
}

func (l *leases) sum(all []loss) *Told {
	t := &Told{Count: int64(len(all)), Lease: int64(l.c.ttl)}
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
