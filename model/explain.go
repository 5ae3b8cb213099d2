package model

import (
	"cmp"
	"math"
	"slices"
	"time"

	"hammerlock/history"
)

// event is the start or the end of a call. An unanswered call has no end.
type event struct {
	at   time.Duration
	call int32
	end  bool
}

// facts are what is known about a hold before any search.
type facts struct {
	grant        int32         // in Page.Calls; -1 = none
	answered     int32         // the event of its grant's answer; -1 = none
	first, last  int32         // events of its calls
	proof        int32         // event: start of the last call that shows that it was granted; -1 = none
	kept         int32         // event: start of the last call that shows that it was not lost before; -1 = none
	released     bool          // an answer shows that it is over
	idle         bool          // nothing shows that its acquire was granted: only a deviation needs it
	until        time.Duration // its latest possible end, as far as answers show
	begun        int32         // number of its calls that have begun, for the pass that finds the cuts
	waits        bool          // only its grant call has begun; for the same pass
	freeing      int32         // call: a successful release under way; -1 = none
	maybeFreeing int32         // call: an unanswered release that has begun; -1 = none
}

// explainer looks for the story of a page. It cuts the page into parts, at moments at which all stories agree on the
// state. It walks through each part with one state, and searches the part if the walk fails.
type explainer struct {
	p      *Page
	b      Bounds
	events []event
	holds  []facts
	done   []bool // by call: it has had its effect
	cuts   []cut
	wins   windows
	one    single
	steps  []Step
	links  []int32 // by step: index in Page.Calls; -1 = none
	story  Story
	search *searcher
}

// cut is a moment at which the state is known: the lock is free, or its holder has made no call since the grant.
type cut struct {
	event   int32 // the cut lies after this event
	owner   int32 // -1 = free
	waiting int32 // number of grants under way
}

func newExplainer(p *Page, b Bounds) *explainer {
	e := &explainer{p: p, b: b}
	if e.b.States == 0 {
		e.b.States = DefaultStates
	}
	if e.b.All == 0 {
		e.b.All = math.MaxInt
	}
	e.wins = newWindows(p.Windows)
	e.list()
	e.know()
	e.cut()
	return e
}

// list sorts the starts and ends of all calls. A call that begins when another ends overlaps it.
func (e *explainer) list() {
	begins, ends := make([]event, 0, len(e.p.Calls)), make([]event, 0, len(e.p.Calls))
	for i := range e.p.Calls {
		c := &e.p.Calls[i]
		begins = append(begins, event{c.From, int32(i), false})
		if !c.Unanswered {
			ends = append(ends, event{c.To, int32(i), true})
		}
	}
	order := func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.call, b.call)) }
	for _, list := range [][]event{begins, ends} {
		if !slices.IsSortedFunc(list, order) {
			slices.SortFunc(list, order)
		}
	}
	e.events = make([]event, 0, len(begins)+len(ends))
	for len(begins) > 0 || len(ends) > 0 {
		if len(ends) == 0 || len(begins) > 0 && begins[0].at <= ends[0].at {
			e.events, begins = append(e.events, begins[0]), begins[1:]
		} else {
			e.events, ends = append(e.events, ends[0]), ends[1:]
		}
	}
}

func (e *explainer) know() {
	e.holds, e.done = make([]facts, len(e.p.Holds)), make([]bool, len(e.p.Calls))
	for i := range e.holds {
		e.holds[i] = facts{grant: -1, answered: -1, first: -1, proof: -1, kept: -1, freeing: -1, maybeFreeing: -1}
	}
	for i, v := range e.events {
		c := &e.p.Calls[v.call]
		h := &e.holds[c.Hold]
		if h.last = int32(i); h.first < 0 {
			h.first = int32(i)
		}
		switch {
		case v.end:
			if h.knows(c, e.p); c.Kind == Grant {
				h.answered = int32(i)
			}
		case c.Kind == Grant:
			h.grant = v.call
		case c.Unanswered || c.Kind == Lost:
		case c.Kind == Release && !e.p.Owned: // its success shows nothing
			if h.grant >= 0 && e.p.lasts(&e.p.Calls[h.grant]) {
				h.kept = int32(i)
			}
		default:
			if h.proof = int32(i); !c.Anew {
				h.kept = int32(i)
			}
		}
	}
	for i := range e.p.Calls {
		if c := &e.p.Calls[i]; c.Kind == Extend && c.Unanswered {
			h := &e.holds[c.Hold]
			if h.until = plus(h.until, e.p.Most(c.TTL)); c.Anew || c.Open {
				h.until = history.Forever
			}
		}
	}
	for i := range e.holds {
		h := &e.holds[i]
		h.idle = h.proof < 0 && (h.grant < 0 || e.p.Calls[h.grant].Unanswered)
		if !h.released && e.wins.late {
			h.until = history.Forever
		}
	}
}

// lasts reports whether a lease cannot be over when its grant is answered.
func (r *Rules) lasts(c *Call) bool { return plus(c.From, r.Least(c.TTL)) > c.To }

// knows updates the facts of a hold by the answer to a call.
func (h *facts) knows(c *Call, p *Page) {
	ttl := c.TTL
	switch c.Kind {
	case Release, Lost:
		h.until, h.released = max(h.until, c.To), true
	case Seen:
		if h.grant < 0 {
			break
		}
		ttl = p.Calls[h.grant].TTL
		fallthrough
	default:
		switch {
		case h.released && !c.Anew:
		case c.Open:
			h.until = history.Forever
		default:
			h.until = max(h.until, plus(c.To, p.Most(ttl)))
		}
	}
}

// longPart is a number of events. A part with more events is cut even if other grants are in progress. A lock with
// deviations may have given those grants before the cut; stories after the cut ignore that.
const longPart = 100

// cut finds the moments at which every story without a deviation has the same state: no hold has calls before and
// after. There are two exceptions. A granted hold may have calls on both sides if a later call shows that it kept the
// lock. Grants may be in progress if they succeed later.
func (e *explainer) cut() {
	alive, waiting, until := 0, 0, time.Duration(0)
	for i, v := range e.events {
		c := &e.p.Calls[v.call]
		h := &e.holds[c.Hold]
		if h.idle {
			continue
		}
		granted := c.Kind == Grant && !c.Unanswered && h.kept > int32(i)
		if h.waits {
			h.waits = false
			waiting--
		}
		if !v.end {
			if h.begun++; granted {
				h.waits = true
				waiting++
			}
		}
		if int32(i) == h.first {
			alive++
		}
		if int32(i) == h.last {
			alive--
			if until = max(until, h.until); h.released {
				until = max(until, c.To)
			}
		}
		switch {
		case alive == 0 && i+1 < len(e.events) && e.events[i+1].at > until:
			e.cuts = append(e.cuts, cut{int32(i), -1, 0})
		case v.end && granted && h.begun == 1 && alive-1-waiting == 0 && e.wins.find(c.From, v.at) < 0 &&
			(waiting == 0 || i-e.lastCut() > longPart):
			e.cuts, until = append(e.cuts, cut{int32(i), c.Hold, int32(waiting)}), 0
		}
	}
	e.cuts = append(e.cuts, cut{int32(len(e.events)) - 1, -1, 0})
}

func (e *explainer) explain() Story {
	from, start := int32(0), unheld
	for n := 0; n < len(e.cuts); n++ {
		c := e.cuts[n]
		e.one = start
		kept := len(e.steps)
		if ok := e.walk(from, c.event+1) && (c.owner < 0 || e.one.owner == c.owner); ok {
			if start = e.one; start.owner >= 0 && c.owner < 0 && n < len(e.cuts)-1 {
				e.lapse(max(start.cur, plus(start.lease.lo, e.p.Least(start.lease.ttl))))
			}
		} else {
			e.steps, e.links = e.steps[:kept], e.links[:kept]
			start, n = e.seek(from, n, start)
			c = e.cuts[n]
		}
		if from = c.event + 1; c.owner < 0 {
			start = unheld
		}
	}
	e.finish()
	return e.story
}

// waiting lists the grants that were called before an event and answered after it. It stops when it has found as many
// as the argument many says.
func (e *explainer) waiting(at, many int32) (list []int32) {
	for i := at - 1; i >= 0 && int32(len(list)) < many; i-- {
		v := e.events[i]
		c := &e.p.Calls[v.call]
		if h := &e.holds[c.Hold]; !v.end && c.Kind == Grant && !c.Unanswered && h.kept > i && h.answered >= at {
			list = append(list, v.call)
		}
	}
	return list
}

// lastCut returns the index of the event before the latest cut; 0 if there is no cut yet.
func (e *explainer) lastCut() int {
	if len(e.cuts) == 0 {
		return 0
	}
	return int(e.cuts[len(e.cuts)-1].event)
}
