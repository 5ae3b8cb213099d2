package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// phantoms finds acquires that were reported as refused although their token was in the servers, or was released
// or extended.
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
	asked := map[uint64]bool{} // by tries that were refused
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
			x.misses["minority"]++ // a minority of the sites granted it and could not be asked to release it
		case x.c.partial(op) && x.c.forgotten(op.Key, op.Call, x.c.Ops[n].Return) != nil:
			x.misses["given back around a fault"]++
		default:
			x.add(finding{cause: x.c.phantom(op), pair: pair{int32(i), -1}, op: n})
		}
	}
	maps.DeleteFunc(seen, func(token uint64, _ int32) bool { return asked[token] })
	x.strays(seen)
}

// unownedTokens are the tokens that were seen in the servers and belong to no hold, with the last operation that saw
// each. What is seen during the run on one of several sites does not count: a minority's grant may be on its way out.
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

// knownSights is how many keys must have been seen with the token of a hold for a lock to be one that keeps those.
const knownSights = 3

// mostStrays is how many keys of no call are looked at: each is compared with all calls, and one is enough.
const mostStrays = 32

// strays finds keys that no call accounts for: on the only server a key has a token of no call, at a moment when no
// hold is open, and the try that made it was refused by its answer. A lock that tries again within a call, with another
// token because an answer was lost, leaves such a key until its lease is over. A lock that grants before it is asked
// sets keys at any time. The tokens are unowned, each with the
// operation that saw it last.
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
			x.misses["a key of no call, and a clock"]++ // when it was made is not known
		default:
			x.add(finding{cause: history.Phantom, pair: pair{try, -1}, op: n})
		}
	}
}

// keepsTokens tells whether what is seen of the lock's keys is the token of a hold, and never another one's than that
// of a hold that was surely open then.
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

// mostLooks is how many holds are looked at for the one with the token that was seen: it is one of the last.
const mostLooks = 64

// owners tells whether a hold has the token that was seen, and whether only others were surely open then.
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

// held tells whether a hold of the page may have been open at a sight.
func (x *examiner) held(sight *history.Op) bool {
	return slices.ContainsFunc(x.c.holdsOf(sight.Key), func(n int32) bool {
		h := &x.c.holds[n]
		end := history.Forever
		switch {
		case h.Outcome != history.OK:
			// a late command can have had its effect until then
			end = h.Return + 2*max(h.TTL+x.c.Bounds.Linger, time.Second)
		case h.answer != history.Unknown && h.Release >= 0:
			end = h.releaseReturn
		case !x.c.Claims.Renews: // what became of it is not known
			end = x.sweeper.latest(h)
		}
		return h.Call <= sight.Return && (h.Return == history.Forever || end >= sight.Call)
	})
}

// maker is the refused try that a key with such a life comes from; -1 if it can be another call's that is still open,
// or no try was asking then. A lease may linger, so that the key was made by as much earlier.
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
