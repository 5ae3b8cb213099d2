package model

import (
	"time"

	"hammerlock/history"
)

// lease describes a hold that the servers have: its lease began between lo and hi, and lasts for ttl.
type lease struct {
	hold        int32
	lo, hi, ttl time.Duration
	late        bool // it lasts longer than T2
}

// single is the state of the lock while only one state is possible: all answered calls have had their effect. The
// field cur is the earliest time of this state.
type single struct {
	owner int32 // -1 = free
	lease lease
	cur   time.Duration
}

var unheld = single{owner: -1}

// over returns the latest end of a lease; Forever if it lasts too long.
func (r *Rules) over(l *lease) time.Duration {
	if l.late {
		return history.Forever
	}
	return plus(l.hi, r.Most(l.ttl))
}

// begin returns the lease that a call begins between two times. With several sites, one site may have granted it right
// after the call.
func (r *Rules) begin(c *Call, at, by time.Duration) lease {
	if r.Sites > 1 {
		at = c.From
	}
	return lease{c.Hold, at, by, c.TTL, c.Open}
}

// alive narrows the bounds of a lease: it was alive at some time between `at` and `by`.
func (r *Rules) alive(l lease, at, by time.Duration) lease {
	if l.hi = min(l.hi, by); !l.late {
		l.lo = max(l.lo, at-r.Most(l.ttl))
	}
	return l
}

// walk goes through a part of the page with a single state, and lets each call have its effect as soon as an answer
// needs it. It uses no windows. It returns false if some call cannot have its effect in this way; a search may still
// find a story.
func (e *explainer) walk(from, to int32) bool {
	for i := from; i < to; i++ {
		v := e.events[i]
		c := &e.p.Calls[v.call]
		h := &e.holds[c.Hold]
		switch {
		case h.idle:
		case !v.end:
			h.opens(c, v.call)
		case e.done[v.call]:
		case !e.returned(v.call, c):
			return false
		}
	}
	return true
}

// opens records the start of a release.
func (h *facts) opens(c *Call, n int32) {
	switch {
	case c.Kind == Release && c.Unanswered:
		h.maybeFreeing = n
	case c.Kind == Release:
		h.freeing = n
	}
}

// returned lets a call have its effect before its answer. It returns false if that is impossible.
func (e *explainer) returned(n int32, c *Call) bool {
	mine := e.one.owner == c.Hold
	switch c.Kind {
	case Grant:
		return e.take(n, c, c.To)
	case Lost:
		h := &e.holds[c.Hold]
		if mine && !e.free(c.To) || !mine && h.grant >= 0 && e.p.Calls[h.grant].Unanswered && !e.done[h.grant] {
			return false
		}
		e.note(n, max(e.one.cur, c.From)) // the next effect may still lie before this answer
		return true
	case Seen:
		return !c.Endless && (mine || e.enter(c)) && e.use(n, c)
	default:
		return (mine || e.enter(c)) && e.use(n, c)
	}
}

// enter lets the acquire of the call's hold have its effect now. It returns false if that is impossible.
func (e *explainer) enter(c *Call) bool {
	n := e.holds[c.Hold].grant
	return n >= 0 && !e.done[n] && e.take(n, &e.p.Calls[n], c.To)
}

// take grants the lock before a given time. It returns false if the lock cannot be free in time.
func (e *explainer) take(n int32, c *Call, by time.Duration) bool {
	if e.one.owner >= 0 && !e.free(by) {
		return false
	}
	at := max(e.one.cur, c.From)
	if at > by {
		return false
	}
	e.one = single{c.Hold, e.p.begin(c, at, by), at}
	e.done[n] = true
	e.note(n, at)
	return true
}

// use lets a call of the owner have its effect. It returns false if the lease ends too early, or the answer comes
// too early.
func (e *explainer) use(n int32, c *Call) bool {
	o, at := &e.one, max(e.one.cur, c.From)
	over := e.p.over(&o.lease)
	if c.looks(at) > over || at > c.To {
		return false
	}
	switch o.cur = at; c.Kind {
	case Extend:
		o.lease = e.p.begin(c, at, c.To)
	case Release:
		o.owner = -1
	default:
		o.lease = e.p.alive(o.lease, at, c.To)
	}
	e.done[n] = true
	e.note(n, at)
	return true
}

// free ends the owner's hold before a given time, as early as possible. It returns false if the hold cannot
// end in time.
func (e *explainer) free(by time.Duration) bool {
	o, h := &e.one, &e.holds[e.one.owner]
	if n := h.freeing; n >= 0 && !e.done[n] {
		c := &e.p.Calls[n]
		return e.use(n, c) && o.cur <= by
	}
	end, n := max(o.cur, plus(o.lease.lo, e.p.Least(o.lease.ttl))), int32(-1)
	if m := h.maybeFreeing; m >= 0 && !e.done[m] && max(o.cur, e.p.Calls[m].From) <= end {
		end, n = max(o.cur, e.p.Calls[m].From), m
	}
	if end > by {
		return false
	}
	if n >= 0 {
		e.done[n] = true
		e.note(n, end)
	} else {
		e.lapse(end)
	}
	o.owner, o.cur = -1, end
	return true
}

func (e *explainer) lapse(at time.Duration) {
	if e.b.Instants {
		e.add(Step{At: at, Event: LeaseEnd, Hold: e.one.owner, Window: -1, Against: -1}, -1)
	}
}

func (e *explainer) note(n int32, at time.Duration) {
	if e.b.Instants {
		e.add(e.effect(n, at), n)
	}
}

func (e *explainer) effect(n int32, at time.Duration) Step {
	c := &e.p.Calls[n]
	return Step{At: at, Event: Effect, Call: c.ID, Kind: c.Kind, Unanswered: c.Unanswered, Hold: c.Hold, Window: -1,
		Against: -1}
}

func (e *explainer) add(s Step, call int32) {
	e.steps, e.links = append(e.steps, s), append(e.links, call)
}
