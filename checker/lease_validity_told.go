package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

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
