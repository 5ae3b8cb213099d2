package certify

import (
	"cmp"
	"slices"
)

// told proves that the lock gave no wrong answer: every answered call has an instant in the story.
func told(h *History, _ []*op) bool {
	for _, o := range h.list {
		a := h.acquire(o)
		call := o.Kind == "acquire" || o.Kind == "extend" || o.Kind == "release"
		if call && a != nil && !o.done && (o.Outcome == "ok" && (o.Kind != "release" || h.Claims.Owned) ||
			h.Claims.Owned && a.done && o.denies() && o.Reason == "lost") {
			return false
		}
	}
	return h.End == "complete" && h.Claims.Excludes
}

// alone proves what told proves, and that holders who exclude each other did not rely on the lock at the same time.
func alone(h *History, _ []*op) bool {
	var grants []*op
	for _, o := range h.list {
		if o.Kind == "acquire" && h.acquire(o) == o && o.Outcome == "ok" {
			grants = append(grants, o)
		}
	}
	slices.SortFunc(grants, func(a, b *op) int { return cmp.Compare(a.Return, b.Return) })
	believers := map[int32][]*op{}
	for _, a := range grants {
		from, to := h.believed(a)
		sum, still := h.weight(a), believers[a.Key][:0]
		for _, b := range believers[a.Key] {
			f, t := h.believed(b)
			if t > from-h.Bounds.Slack {
				still = append(still, b)
			}
			if s := h.slack(a, b); plus(from, s) < t && plus(f, s) < to {
				sum += h.weight(b)
			}
		}
		if believers[a.Key] = append(still, a); sum > h.room() && from < to {
			return false
		}
	}
	return told(h, nil)
}

// kept proves that leases lasted as promised. No holder was promised more than its lease, a lock that renews lost no
// hold, and every answered call has an instant in the story.
func kept(h *History, _ []*op) bool {
	for _, o := range h.list {
		a := h.acquire(o)
		if claimed(h, []*op{o}) || a != nil && h.Claims.Renews && (o.Kind == "lose" || o.denies()) {
			return false
		}
	}
	return told(h, nil)
}

func claimed(h *History, o []*op) bool {
	sure := plus(plus(h.least(o[0].TTL), h.Bounds.Round), h.Bounds.Linger)
	return len(o) == 1 && (o[0].Kind == "acquire" || o[0].Kind == "extend") && o[0].Outcome == "ok" &&
		o[0].Until != forever && o[0].Until > plus(o[0].Return, sure)
}

// overran proves that the first holder used the counter after its hold had ended, while the second holder believed in
// its hold.
func overran(h *History, o []*op) bool {
	if len(o) != 3 || h.Fenced || h.Heeds && h.Bounds.Gap == 0 || !h.fits("acquire", o[:2]...) ||
		!h.clash(o[0], o[1]) || o[2].Hold != o[0].ID || !h.fits("store", o[2]) && !h.fits("load", o[2]) ||
		h.paused(o[0].Process, o[0].Return, o[2].Call) {
		return false
	}
	_, end := h.believed(o[0])
	from, to := h.believed(o[1])
	s, begin := h.slack(o[0], o[1]), end
	for x := o[0].rest; x != nil; x = x.rest {
		if x.Kind == "load" && x.Call < o[2].Call {
			begin = max(begin, x.Call)
		}
	}
	return o[2].Call > end && from >= end-s && plus(from, s) < o[2].Call && plus(begin, s) < to
}

// paused reports whether a process was paused between two moments without a planned fault.
func (h *History) paused(process int32, from, to ns) bool {
	return slices.ContainsFunc(h.windows, func(w window) bool {
		return w.op.Kind == "gap" && w.op.Value == 0 && !w.planned && w.op.Process == process && w.from <= to &&
			w.to >= from
	})
}

// excused proves that an unplanned event may have affected the calls of an undecided verdict: the two overlap in time.
// A change of role has no known end.
func excused(h *History, o []*op) bool {
	from, to := forever, -forever
	for _, x := range o[min(1, len(o)):] {
		from = min(from, x.Call)
		if to = max(to, x.Call); x.Return != forever {
			to = max(to, x.Return)
		}
	}
	return len(o) > 1 && slices.ContainsFunc(h.windows, func(w window) bool {
		return w.op == o[0] && !w.planned && w.from <= plus(to, h.Bounds.Slack) &&
			(w.op.Kind == "role" || plus(w.to, h.Bounds.Slack) >= from)
	})
}

// found proves that a key was on the servers although calls should have removed it before.
func found(h *History, o []*op) bool {
	if len(o) < 2 || o[1].Kind != "found" && (o[1].Kind != "sight" || h.Sites > 1) || o[0].Token == "" ||
		o[0].Kind != "acquire" || o[0].Token != o[1].Token || o[0].Key != o[1].Key || o[1].Until <= o[1].Call ||
		slices.ContainsFunc(h.windows, func(w window) bool { return w.from <= o[1].Call && w.to >= o[0].Call }) {
		return false
	}
	if o[0].Outcome == "failed" {
		return o[0].Reason != "quorum" && o[1].Call >= plus(o[0].Return, h.slack(o[0], o[1]))
	}
	released := forever
	for x := o[0].rest; x != nil; x = x.rest {
		if x.Kind == "release" && x.Outcome == "ok" {
			released = min(released, x.Return)
		}
	}
	for x := o[0].rest; x != nil; x = x.rest {
		unknown := x.Outcome != "ok" && x.Outcome != "failed"
		if (x.Kind == "extend" || x.Kind == "acquire") && (unknown || x.Return >= released) {
			return false
		}
	}
	return plus(released, h.slack(o[0], o[1])) < o[1].Call && h.Sites < 2
}

// outlived proves that the remaining life of a key is longer than the longest lease. A key without an end must be that
// of a hold, since a lock may write one before it is granted.
func outlived(h *History, o []*op) bool {
	if len(o) != 1 {
		return false
	}
	longest, held := ns(0), o[0].Until < forever
	for _, x := range h.list {
		if longest = max(longest, x.TTL); x.Kind == "fault" && x.Call <= o[0].Call {
			return false
		}
		held = held || x.Kind == "acquire" && x.Outcome == "ok" && x.Key == o[0].Key && x.Token == o[0].Token &&
			x.Return <= o[0].Call
	}
	return held && h.Claims.Expires && (o[0].Kind == "found" || o[0].Kind == "sight") && longest > 0 &&
		o[0].Until > plus(o[0].Return, h.most(longest))
}

// unrenewed proves that a lock failed to renew a hold that was lost. There was time for a renewal between the answer
// to the last renewal and the end of the lease, and nothing kept the process from renewing.
func unrenewed(h *History, o []*op) bool {
	if len(o) != 2 || h.acquire(o[0]) != o[0] || o[1].Hold != o[0].ID || !h.Claims.Renews ||
		o[1].Kind != "lose" && !o[1].denies() {
		return false
	}
	last := o[0]
	for x := o[0].rest; x != nil; x = x.rest {
		if x.Kind == "extend" && x.Outcome == "ok" && x.Call > last.Call && x.Return <= o[1].Return {
			last = x
		}
	}
	over := plus(last.Call, h.least(last.TTL))
	for x := o[0].rest; x != nil; x = x.rest {
		if x.Kind == "extend" && x != last && x.Call < over && x.Return > last.Return ||
			x.Kind == "release" && x.Call < o[1].Call {
			return false
		}
	}
	for _, x := range h.list {
		if x.Kind == "fault" || x.Kind == "crash" && x.Worker == o[0].Worker {
			return false
		}
	}
	return o[1].Return >= over && over-last.Return >= o[0].TTL/3 && !h.paused(o[0].Process, last.Call, over) &&
		o[1].Call > over
}
