package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// knownSights is how many keys must have been seen with the token of a call for a lock to be one that keeps those.
const knownSights = 3

// mostStrange is how many may have been seen with another one, which must be rarer.
const mostStrange = 100

// strays finds keys that no call accounts for: on the only server a key has a token of no call, at a moment when no
// hold is open, and the try that made it was refused by its answer. A lock that tries again within a call, with another
// token because an answer was lost, leaves such a key until its lease is over. The tokens are unowned, each with the
// operation that saw it last.
func (x *examiner) strays(unowned map[uint64]int32) {
	c := x.c
	if len(unowned) == 0 || !c.Claims.Cleans || c.Nodes != 1 || c.Claims.Permits > 0 || c.Claims.Sets ||
		c.Partial != "" || c.Wire != "" {
		return
	}
	known, strange := 0, 0
	for _, n := range c.events {
		switch op := &c.Ops[n]; {
		case op.Kind != history.Sight:
		case !ofNoCall(unowned, op):
			known++
		default:
			strange++
		}
	}
	if known < knownSights || strange > min(known, mostStrange) {
		return // it keeps something else than tokens
	}
	for _, n := range c.events {
		if op := &c.Ops[n]; op.Kind == history.Sight && ofNoCall(unowned, op) && x.held(op, true) {
			return // it changes them
		}
	}
	for _, n := range slices.SortedFunc(maps.Values(unowned), cmp.Compare) {
		op := &c.Ops[n]
		if op.Kind != history.Sight || op.Until == history.Forever || x.held(op, false) {
			continue
		}
		switch try := x.maker(op); {
		case try < 0:
		case c.stretched(c.Ops[try].Call, op.Return) != nil:
			x.misses["a key of no call, and a clock"]++ // when it was made is not known
		default:
			x.add(finding{history.Phantom, pair{try, -1}, n, nil, false})
		}
	}
}

func ofNoCall(unowned map[uint64]int32, op *history.Op) bool {
	_, is := unowned[op.Token]
	return is
}

// held tells whether a hold of the page was open at a sight: for sure, or perhaps.
func (x *examiner) held(sight *history.Op, surely bool) bool {
	return slices.ContainsFunc(x.c.holdsOf(sight.Key), func(n int32) bool {
		h := &x.c.holds[n]
		if surely {
			return h.Outcome == history.OK && h.Return <= sight.Call && h.trusted() > sight.Return
		}
		end := history.Forever // what became of it is not known
		switch {
		case h.Outcome != history.OK:
			end = h.Return + 2*max(h.TTL, time.Second) // a late command can have had its effect until then
		case h.answer != history.Unknown && h.Release >= 0:
			end = h.releaseReturn
		}
		return h.Call <= sight.Return && (h.Return == history.Forever || end >= sight.Call)
	})
}

// maker is the refused try that a key with such a life comes from; -1 if it can be another call's that is still open,
// or no try was asking then.
func (x *examiner) maker(sight *history.Op) (try int32) {
	c := x.c
	try = -1
	slack := sight.Return - sight.Call + c.anySlack() + c.Bounds.Round + 2*time.Millisecond
	for i := range c.Ops {
		op := &c.Ops[i]
		made := sight.Until - op.TTL
		if op.Kind != history.Acquire || op.Key != sight.Key || op.TTL == 0 || op.Call > made+slack ||
			op.Return < made-slack {
			continue
		}
		if op.Return > sight.Call {
			return -1
		}
		if op.Outcome == history.Failed && op.Reason == history.Busy {
			try = int32(i)
		}
	}
	return try
}
