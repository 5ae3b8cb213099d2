package checker

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
)

// phantoms finds Acquires that were reported as refused although their token was on the servers, or was released
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
	asked := map[uint64]bool{} // tokens of refused tries
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
		case !ok || x.c.Ops[n].Call < plus(op.Return, x.c.slack(op.Process, x.c.Ops[n].Process)):
		case op.Reason == history.Quorum:
			x.misses["minority"]++ // a minority of the sites granted the lock, and could not be reached for the release
		case x.c.partial(op) && x.c.forgotten(op.Key, op.Call, x.c.Ops[n].Return) != nil:
			x.misses["given back around a fault"]++
		default:
			x.add(finding{cause: x.c.phantom(op), pair: pair{int32(i), -1}, op: n})
		}
	}
	maps.DeleteFunc(seen, func(token uint64, _ int32) bool { return asked[token] })
	x.strays(seen)
}

// unownedTokens returns the tokens that were seen on the servers and belong to no hold. For each token it gives the
// index in Ops of the last operation that saw it. With several sites only keys at the end of the run count, because an
// earlier one may be a minority's grant that the lock was about to release.
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

// knownSights is a number of keys. If that many were seen with the token of a hold, the lock writes tokens into
// its keys.
const knownSights = 3

// mostStrays is the number of unexplained keys that are examined: each is compared with all calls, and one is enough.
const mostStrays = 32

// strays finds keys that no call explains. Such a key has a token that no call reported. It was seen on the only
// server while no hold was open, and a refused try must have made it. For example, a lock may lose an answer and try
// again within the same call, with a new token. Then the key with the first token stays for a lease. A lock that
// grants in advance sets keys at any time, so it is not judged.
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
			x.misses["a key of no call, and a clock"]++ // a clock was set, so it is unknown when the key was made
		default:
			x.add(finding{cause: history.Phantom, pair: pair{try, -1}, op: n})
		}
	}
}

// keepsTokens reports whether the lock's keys contain the tokens of holds. It returns false if a key was seen whose
// token was not that of the hold which was certainly open.
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

// mostLooks limits the search for the owner of a seen token to this number of latest holds.
const mostLooks = 64

// owners searches the holds of the page for a seen token. The result own says that a hold has this token. The result
// others says that holds were certainly open at that time, and that all of them have other tokens.
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
	slack := x.c.anySlack()
	return slices.ContainsFunc(x.c.holdsOf(sight.Key), func(n int32) bool {
		h := &x.c.holds[n]
		end := history.Forever
		switch {
		case h.Outcome != history.OK:
			// a late command may take effect until then
			end = h.Return + 2*max(h.TTL+x.c.Bounds.Linger, time.Second)
		case h.answer != history.Unknown && h.Release >= 0:
			end = h.releaseReturn
		case !x.c.Claims.Renews: // the end of the hold is unknown
			end = x.sweeper.latest(h)
		}
		return h.Call <= plus(sight.Return, slack) && (h.Return == history.Forever ||
			plus(end, slack) >= sight.Call)
	})
}

// maker returns the index of the refused try that must have made a key. The key's remaining TTL tells when it was
// made; if leases may linger, the key may be older by that time. It returns -1 if no try was in progress then, or if a
// call that is still open may have made the key.
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
		if plus(op.Return, c.anySlack()) > sight.Call {
			return -1
		}
		if op.Outcome == history.Failed && op.Reason == history.Busy {
			try = int32(i)
		}
	}
	return try
}
