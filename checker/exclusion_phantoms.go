package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// phantoms finds Acquires that were reported as refused although their token was on the servers, or was released or
// extended.
func (x *examiner) phantoms() {
	seen := x.unownedTokens()
	for _, n := range x.c.events {
		op := &x.c.Ops[n]
		if op.Kind != history.Extend && (op.Kind != history.Release || !x.c.Claims.Owned) {
			continue
		}
		if a := x.c.op(op.Hold); a != nil && a.Kind == history.Acquire && a.Outcome == history.Failed {
			x.add(finding{cause: x.c.phantom(a), pair: pair{x.c.at(a.ID), -1}, op: n})
		}
	}
	if len(seen) == 0 {
		return
	}
	asked := map[uint64]bool{} // tokens of tries that were refused
	for i := range x.c.Ops {
		op := &x.c.Ops[i]
		if op.Kind != history.Acquire || op.Outcome != history.Failed || op.Token == 0 {
			continue
		}
		token := x.c.mark(op.Token, op.Key)
		n, ok := seen[token]
		if ok {
			asked[token] = true
		}
		switch {
		case !ok || x.c.Ops[n].Call < op.Return:
		case op.Reason == history.Quorum:
			x.misses["minority"]++ // a minority of the sites granted it and could not be reached for the release
		case x.c.partial(op) && x.c.forgotten(op.Key, op.Call, x.c.Ops[n].Return) != nil:
			x.misses["given back around a fault"]++
		default:
			x.add(finding{cause: x.c.phantom(op), pair: pair{int32(i), -1}, op: n})
		}
	}
	maps.DeleteFunc(seen, func(token uint64, _ int32) bool { return asked[token] })
	x.strays(seen)
}

// unownedTokens maps tokens that were seen on the servers and belong to no hold to the last operation that saw them.
// With several sites only the end of the run counts: during the run a minority's grant may be about to be released.
func (x *examiner) unownedTokens() map[uint64]int32 {
	seen := map[uint64]int32{}
	for _, n := range x.c.events {
		op := &x.c.Ops[n]
		if op.Token != 0 && (op.Kind == history.Found || op.Kind == history.Sight && x.c.Sites < 2) {
			seen[x.c.mark(op.Token, op.Key)] = n
		}
	}
	if len(seen) == 0 {
		return nil
	}
	for i := range x.c.holds {
		h := &x.c.holds[i]
		delete(seen, x.c.mark(x.c.acquire(h).Token, h.Key))
	}
	return seen
}

// knownSights is how many keys must have been seen with the token of a hold to conclude that the lock writes tokens
// into its key.
const knownSights = 3

// mostStrays is how many unexplained keys are examined: each is compared with all calls, and one is enough.
const mostStrays = 32

// strays finds keys that no call explains: on the only server, a key has the token of no call while no hold is open,
// and it was made by a try that was refused. A lock that tries again within a call, with another token after a lost
// answer, leaves such a key for a lease. A lock that grants before it is asked sets keys at any time, so it is not
// judged. The argument maps unowned tokens to the last operation that saw them.
func (x *examiner) strays(unowned map[uint64]int32) {
	c := x.c
	if len(unowned) == 0 || !c.Claims.Cleans || c.Nodes != 1 || c.Claims.Permits > 0 || c.Claims.Sets ||
		c.Claims.Begins || c.Partial != "" || !x.keepsTokens() {
		return
	}
	latest := slices.Sorted(maps.Values(unowned))
	for _, n := range latest[max(0, len(latest)-mostStrays):] {
		op := &c.Ops[n]
		if op.Kind != history.Sight || op.Until == history.Forever || x.held(op) {
			continue
		}
		switch try := x.maker(op); {
		case try < 0:
		case c.stretched(c.Ops[try].Call, op.Return) != nil:
			x.misses["a key of no call, and a clock"]++ // a clock was set, so it is unknown when it was made
		default:
			x.add(finding{cause: history.Phantom, pair: pair{try, -1}, op: n})
		}
	}
}

// keepsTokens tells whether the lock's keys have the tokens of holds: no key was seen with a token of another hold than
// the one that was certainly open.
func (x *examiner) keepsTokens() bool {
	known := 0
	for _, n := range x.c.events {
		op := &x.c.Ops[n]
		if op.Kind != history.Sight {
			continue
		}
		others, own := x.owners(op)
		if others {
			return false
		}
		if own {
			known++
		}
	}
	return known >= knownSights
}

// mostLooks is how many holds are searched for the token that was seen: it is one of the last.
const mostLooks = 64

// owners tells whether a hold has the token that was seen, and whether only other holds were certainly open then.
func (x *examiner) owners(sight *history.Op) (others, own bool) {
	holds := x.c.holdsOf(sight.Key)
	at, _ := slices.BinarySearchFunc(holds, sight.Return+1, func(n int32, t time.Duration) int {
		return cmp.Compare(x.c.holds[n].Call, t)
	})
	open := false
	for _, n := range slices.Backward(holds[max(0, at-mostLooks):at]) {
		h := &x.c.holds[n]
		has, surely := x.c.acquire(h).Token == sight.Token, h.Outcome == history.OK && h.Return <= sight.Call &&
			h.trusted() > sight.Return
		own, open, others = own || has, open || surely && has, others || surely && !has
	}
	return others && !open, own
}

// held tells whether a hold of the page may have been open when the key was seen.
func (x *examiner) held(sight *history.Op) bool {
	return slices.ContainsFunc(x.c.holdsOf(sight.Key), func(n int32) bool {
		h := &x.c.holds[n]
		end := history.Forever
		switch {
		case h.Outcome != history.OK:
			// a late command may have had its effect until then
			end = h.Return + 2*max(h.TTL+x.c.Bounds.Linger, time.Second)
		case h.answer != history.Unknown && h.Release >= 0:
			end = h.releaseReturn
		case !x.c.Claims.Renews: // it is unknown what happened to it
			end = x.sweeper.latest(h)
		}
		return h.Call <= sight.Return && (h.Return == history.Forever || end >= sight.Call)
	})
}

// maker returns the refused try that must have made a key with that TTL; -1 if it may be of another call that is still
// open, or if no try was in progress then. If leases may linger, the key may have been made that much earlier.
func (x *examiner) maker(sight *history.Op) (try int32) {
	c := x.c
	try = -1
	slack := sight.Return - sight.Call + c.anySlack() + c.Bounds.Round + 2*time.Millisecond
	for i := range c.Ops {
		op := &c.Ops[i]
		made := sight.Until - op.TTL
		if op.Kind != history.Acquire || op.Key != sight.Key || op.TTL == 0 || op.Call > made+slack ||
			op.Return < made-c.Bounds.Linger-slack {
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
