package certify

import (
	"cmp"
	"math"
	"slices"
)

// denies reports whether a holder was told that the lock is not its own.
func (o *op) denies() bool {
	return o.Kind != "acquire" && o.Outcome == "failed" && (o.Reason == "lost" || o.Reason == "busy")
}

// acquire is the call that began an operation's hold; nil if none exists or it was certainly not granted.
func (h *History) acquire(o *op) *op {
	if o.Hold != "" && o.Hold != o.ID {
		if o = h.ops[o.Hold]; o == nil {
			return nil
		}
	}
	if o.Kind != "acquire" || o.Outcome == "failed" {
		return nil
	}
	return o
}

// least and most are T1 and T2, the shortest and longest duration of a lease.
func (h *History) least(ttl ns) ns {
	if !h.Claims.Expires || ttl <= 0 {
		return forever
	}
	return max(ttl-ns(float64(ttl)*h.Bounds.Rate)-h.Bounds.Round, 0)
}

func (h *History) most(ttl ns) ns {
	if !h.Claims.Expires || ttl <= 0 {
		return forever
	}
	return plus(ttl+ns(float64(ttl)*h.Bounds.Rate)+h.Bounds.Round, h.Bounds.Linger)
}

// doubt is the largest error of the clock of an operation's process.
func (h *History) doubt(o *op) ns {
	if d := h.Bounds.Doubts; h.Processes > 1 && int(o.Process) < len(d) {
		return min(d[o.Process].Own+d[o.Process].Offset, h.Bounds.Slack)
	}
	return h.half()
}

// half is half of what two clocks may differ by; slack is the largest difference between the clocks of two operations.
func (h *History) half() ns {
	if h.Processes < 2 {
		return 0
	}
	return (h.Bounds.Slack + 1) / 2
}

func (h *History) slack(a, b *op) ns {
	if a.Process == b.Process {
		return 0
	}
	return h.Bounds.Slack
}

func (h *History) before(a, b *op) bool { return plus(a.Return, h.slack(a, b)) < b.Call }

// room is the number of permits of a lock, and weight is the number that a hold takes. Two holds clash if their permits
// are more than the lock has.
func (h *History) room() int64         { return cmp.Or(h.Claims.Permits, math.MaxInt32) }
func (h *History) weight(a *op) int64  { return cmp.Or(a.Permits, h.room()) }
func (h *History) clash(a, b *op) bool { return a != b && h.weight(a)+h.weight(b) > h.room() }
func (h *History) fits(k string, o ...*op) bool {
	for _, x := range o {
		if x.Kind != k || x.Outcome == "failed" || x.Key != o[0].Key {
			return false
		}
	}
	return true
}

// reaches reports whether servers may have forgotten something between two moments because of the given operation: it
// began a window that overlaps this time.
func (h *History) reaches(id string, from, to ns) bool {
	for _, w := range h.windows {
		if w.op.ID == id && w.forgets {
			return w.from <= plus(to, h.Bounds.Slack) && plus(w.to, h.Bounds.Slack) >= from
		}
	}
	return false
}

// death is the time at which a hold ended because its worker died, or heard of its loss. It is forever if the lock has
// no sessions, or if neither happened. Use the function taken to also consider an upgrade that may have ended the hold.
func (h *History) death(a *op) ns {
	for o := a.rest; o != nil && h.Session; o = o.rest {
		if o.Kind == "lose" {
			return o.Call - h.doubt(a)
		}
	}
	for _, at := range h.crashes[a.Worker] {
		if h.Session && at >= a.Call {
			return at - h.doubt(a)
		}
	}
	return forever
}

func (h *History) taken(a *op) ns {
	if u := h.takes[a.ID]; u != nil {
		return min(u.Call, h.death(a))
	}
	return h.death(a)
}

// believed returns the period in which a holder relied on its hold. The period begins with the answer to the acquire.
// It ends with the deadline, the release, the worker's death or the news of the loss.
func (h *History) believed(a *op) (from, to ns) {
	from, to = forever, h.taken(a)
	if u := h.takes[a.ID]; u != nil && u.Outcome == "ok" { // the hold lasts until the answer to the upgrade
		to = min(u.Return, h.death(a))
	}
	if a.Outcome == "ok" {
		from = a.Return
	}
	until, again, told, released := a.Until, ns(0), a.Call, forever
	if o := h.outermost(a); o != nil {
		to, released = min(to, o.Call), o.Return
	}
	for o := a.rest; o != nil; o = o.rest { // from the last one to the first
		switch {
		case o.Kind == "lose", o.Kind == "extend" && o.denies():
			to = min(to, o.Return)
		case o.Kind == "acquire" && o.Outcome != "failed" && o.Until != 0:
			again = max(again, o.Until)
		case o.Outcome != "failed" && o.Kind == "extend" && o.Until != 0 && o.Call >= told && o.Call <= released:
			until, told = o.Until, o.Call
		}
	}
	for _, at := range h.crashes[a.Worker] {
		if at >= a.Call {
			to = min(to, at)
		}
	}
	return from, min(to, cmp.Or(max(until, again), forever))
}

// entries returns how many times the owner of a hold acquired it.
func (h *History) entries(a *op) (n int) {
	for o := a; o != nil; o = o.rest {
		if o.Kind == "acquire" && o.Outcome != "failed" {
			n++
		}
	}
	return n
}

// outermost returns the release by which a holder gave its hold back; nil if none exists. After re-entries, it is
// the release that left no entry. The lock's answer tells how many entries are left; if it does not, releases are
// counted. An answer that the hold is lost ends the hold, too.
func (h *History) outermost(a *op) *op {
	entries, all := h.entries(a), []*op(nil)
	for o := a.rest; o != nil; o = o.rest { // from the last one to the first
		if o.Kind == "release" && (o.Outcome != "failed" || o.denies() || entries == 1) {
			all = append(all, o)
		}
	}
	for _, o := range slices.Backward(all) {
		if entries--; o.Outcome == "failed" || a.Value != 0 && o.Value == 0 || a.Value == 0 && entries < 1 {
			return o
		}
	}
	return nil
}

// believing checks that the holders relied on the lock at the same time, and that their holds together need more
// permits than the lock has. If their processes differ, the common time must be longer than the clocks may differ.
func believing(h *History, o []*op) bool {
	sum, from, to, half := int64(0), ns(0), forever, ns(0)
	for _, a := range o {
		f, t := h.believed(a)
		if !h.fits("acquire", o[0], a) || h.acquire(a) != a || h.entries(a) > 1 || h.paused(a.Process, a.Call, t) {
			return false
		}
		if a.Process != o[0].Process {
			half = h.half()
		}
		sum, from, to = sum+h.weight(a), max(from, f), min(to, t)
	}
	return from+half < plus(to, -half) && sum > h.room()
}
