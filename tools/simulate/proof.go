package main

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// record has what a history says about each hold, for the proofs. The proofs compare all pairs of holds. They rely only
// on checker/METHOD.md: a call takes effect between its stamps, whatever the machine did.
type record struct {
	h     *history.History
	ops   map[history.ID]*history.Op
	holds []*held
}

// held is one hold with its operations, sorted by call.
type held struct {
	acquire  *history.Op
	extends  []*history.Op
	releases []*history.Op
	again    []*history.Op // re-entries
	upgrade  *history.Op   // the Acquire of an upgrade that may have replaced this hold
	stores   []*history.Op
	loads    []*history.Op
	crashed  time.Duration
	lose     time.Duration
}

const forever = history.Forever

// read groups the operations of a history by hold.
func read(h *history.History) *record {
	r := &record{h: h, ops: map[history.ID]*history.Op{}}
	byID := map[history.ID]*held{}
	for i := range h.Ops {
		op := &h.Ops[i]
		r.ops[op.ID] = op
		if op.Kind == history.Acquire && op.Outermost() && op.Outcome == history.OK {
			byID[op.ID] = &held{acquire: op, crashed: forever, lose: forever}
			r.holds = append(r.holds, byID[op.ID])
		}
	}
	ordered := make([]*history.Op, 0, len(h.Ops))
	for i := range h.Ops {
		ordered = append(ordered, &h.Ops[i])
	}
	slices.SortStableFunc(ordered, func(a, b *history.Op) int { return int(a.Call - b.Call) })
	for _, op := range ordered {
		if op.Kind == history.Crash {
			for _, x := range r.holds {
				if x.acquire.Worker == op.Worker {
					x.crashed = min(x.crashed, op.Call)
				}
			}
		}
		if x := byID[op.Seen]; op.Kind == history.Acquire && x != nil && op.Outcome != history.Failed &&
			x.upgrade == nil {
			x.upgrade = op
		}
		x := byID[op.Hold]
		if x == nil || op == x.acquire {
			continue
		}
		switch op.Kind {
		case history.Extend:
			x.extends = append(x.extends, op)
		case history.Release:
			x.releases = append(x.releases, op)
		case history.Acquire:
			x.again = append(x.again, op)
		case history.Store:
			x.stores = append(x.stores, op)
		case history.Load:
			x.loads = append(x.loads, op)
		case history.Lose:
			x.lose = min(x.lose, op.Return)
		}
	}
	return r
}

// slack is the possible clock difference between two operations.
func (r *record) slack(a, b *history.Op) time.Duration {
	if a.Process == b.Process {
		return 0
	}
	return r.h.Bounds.Slack
}

// least and most return the shortest and the longest life of a lease, T1 and T2 in METHOD.md.
func (r *record) least(ttl time.Duration) time.Duration {
	if ttl == 0 || !r.h.Claims.Expires {
		return forever / 4
	}
	return ttl - time.Duration(float64(ttl)*r.h.Bounds.Rate) - r.h.Bounds.Round
}

func (r *record) most(ttl time.Duration) time.Duration {
	if ttl == 0 || !r.h.Claims.Expires {
		return forever / 4
	}
	return ttl + time.Duration(float64(ttl)*r.h.Bounds.Rate) + r.h.Bounds.Round
}

// sure returns the time until which a hold's lease is certain: T1 after the last successful call that began or
// extended it. If before is not nil, only answers that arrived before that call count. An extension without an answer
// may have shortened the lease.
func (r *record) sure(x *held, before *history.Op) time.Duration {
	end := x.acquire.Call + r.least(x.acquire.TTL)
	for _, list := range [][]*history.Op{x.extends, x.again} {
		for _, op := range list {
			if op.Outcome == history.OK && (before == nil || op.Return < before.Call) {
				end = max(end, op.Call+r.least(op.TTL))
			}
		}
	}
	for _, op := range x.extends {
		if op.Outcome == history.Unknown && (before == nil || op.Call < before.Return) {
			end = min(end, op.Call+r.least(op.TTL))
		}
	}
	return end
}

// given returns the earliest time at which a release or an upgrade may have ended a hold.
func (x *held) given() time.Duration {
	end := forever
	for _, op := range x.releases {
		if op.Outcome != history.Failed || op.Reason == history.Lost {
			end = min(end, op.Call)
		}
	}
	if x.upgrade != nil {
		end = min(end, x.upgrade.Call)
	}
	return end
}

// guaranteed returns the period in which a hold certainly existed, G in METHOD.md. A successful release proves the
// hold up to the call of the release. From the call of a refused extension on, nothing is proved.
func (r *record) guaranteed(x *held) (from, to time.Duration) {
	to = min(r.sure(x, nil), x.given())
	if n := len(x.releases); n > 0 && x.releases[0].Outcome == history.OK && len(x.again) == 0 && x.upgrade == nil {
		to = x.releases[0].Call
	}
	for _, op := range x.extends {
		if op.Outcome == history.Failed {
			to = min(to, op.Call)
		}
	}
	return x.acquire.Return, to
}

// believed returns the period in which the holder relied on its hold, B in METHOD.md.
func (r *record) believed(x *held) (from, to time.Duration) {
	to = x.acquire.Until
	if to == 0 {
		to = forever
	}
	for _, list := range [][]*history.Op{x.extends, x.again} {
		for _, op := range list {
			switch {
			case op.Outcome == history.Failed && op.Reason == history.Lost:
				x.lose = min(x.lose, op.Return)
			case op.Outcome == history.OK && op.Until != 0 && op.Call < x.given():
				to = max(to, op.Until)
			}
		}
	}
	if to == forever && r.h.Claims.Renews && r.disturbed() {
		to = r.sure(x, nil) // a watchdog that cannot act cannot report either
	}
	return x.acquire.Return, min(to, x.given(), x.lose, x.crashed)
}

// disturbed reports whether the history contains any disturbance.
func (r *record) disturbed() bool {
	return len(r.h.Faults) > 0 || slices.ContainsFunc(r.h.Ops, func(op history.Op) bool {
		return op.Kind == history.Gap || op.Kind == history.Incident || op.Kind == history.Role ||
			op.Kind == history.Crash
	})
}

// forgot reports whether a server may have lost grants, or run ahead, between two times. A single server is enough: a
// grant may rest on a bare majority of the sites.
func (r *record) forgot(from, to time.Duration) bool {
	from, to = from-r.h.Bounds.Slack, to+r.h.Bounds.Slack
	sites, heals := max(r.h.Sites, 1), r.heals()
	for i := range r.h.Ops {
		op := &r.h.Ops[i]
		switch op.Kind {
		case history.Fault:
			end, healed := heals[op.Value]
			if !healed {
				end = forever
			}
			if e := &r.h.Faults[op.Value].Effect; e.BreaksPromises() && op.Call <= to && end >= from {
				return true
			}
		case history.Incident, history.Role:
			end := op.Return
			if op.Kind == history.Role || end == forever {
				end = r.whole(op) // for a while two servers may act as the primary
			}
			if op.Call <= to && end >= from && op.Value < int64(sites) {
				return true
			}
		}
	}
	return false
}

// whole returns the first time at which an extension or release succeeds after a change of a server. This success shows
// that the server still has its data.
func (r *record) whole(change *history.Op) time.Duration {
	end := forever
	for _, x := range r.holds {
		for _, op := range append(slices.Clone(x.extends), x.releases...) {
			if op.Outcome == history.OK && op.Call > max(x.acquire.Return, change.Latest())+r.h.Bounds.Slack {
				end = min(end, op.Return)
			}
		}
	}
	return end
}

// clash reports whether two holds exclude each other.
func (r *record) clash(a, b *held) bool { return a.acquire.Permits == 0 || b.acquire.Permits == 0 }

// overlap reports whether two intervals overlap for all possible clocks.
func overlap(from, to, start, end, slack time.Duration) bool {
	return from < to && start < end && max(from, start)+slack < min(to, end)
}

// prove lists the violations that the record alone proves, each in words.
func (r *record) prove() (list []string) {
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for i, a := range r.holds {
		for _, b := range r.holds[:i] {
			if a.acquire.Key == b.acquire.Key {
				r.provePair(a, b, say)
			}
		}
		r.proveAnswers(a, say)
		if r.h.Claims.Reentrant {
			r.proveCounts(a, say)
		}
	}
	r.provePermits(say)
	r.proveStores(say)
	if r.h.Claims.Ordered && !r.disturbed() {
		r.proveOrder(say)
	}
	return list
}

// provePair looks for two simultaneous holders, and for fences that decrease.
func (r *record) provePair(a, b *held, say func(string, ...any)) {
	slack, x, y := r.slack(a.acquire, b.acquire), a.acquire, b.acquire
	if x.Seen == y.ID || y.Seen == x.ID {
		return // an upgrade replaces the other
	}
	forgot := r.forgot(min(x.Call, y.Call), max(x.Return, y.Return))
	if r.clash(a, b) && !forgot {
		from, to := r.guaranteed(a)
		start, end := r.guaranteed(b)
		if overlap(from, to, start, end, slack) {
			say("guarantees of %s and %s overlap", x.ID, y.ID)
		}
		from, to = r.believed(a)
		start, end = r.believed(b)
		if overlap(from, to, start, end, slack) {
			say("beliefs in %s and %s overlap", x.ID, y.ID)
		}
		r.proveRelease(a, b, say)
		r.proveRelease(b, a, say)
	}
	if r.h.Claims.Fences && !forgot {
		switch first, next := x, y; {
		case x.Fence == 0 || y.Fence == 0:
			say("%s or %s has no fence", x.ID, y.ID)
		case x.Fence == y.Fence:
			say("%s and %s have the same fence", x.ID, y.ID)
		default:
			if x.Fence < y.Fence {
				first, next = y, x // first has the larger fence, so it must not be the earlier grant
			}
			if first.Return+slack < next.Call {
				say("the fence of %s is smaller than that of %s before it", next.ID, first.ID)
			}
		}
	}
}

// proveRelease finds a release that succeeded although another hold had been granted in between.
func (r *record) proveRelease(a, b *held, say func(string, ...any)) {
	slack := r.slack(a.acquire, b.acquire)
	if len(a.again) > 0 || a.upgrade != nil || a.acquire.Return+slack >= b.acquire.Call {
		return
	}
	for _, op := range a.releases {
		if op.Outcome == history.OK && b.acquire.Return+slack < op.Call {
			say("%s succeeded, though %s was granted since %s", op.ID, b.acquire.ID, a.acquire.ID)
		}
	}
}

// proveAnswers finds contradictory answers about one hold.
func (r *record) proveAnswers(x *held, say func(string, ...any)) {
	calls := append(slices.Clone(x.extends), x.releases...)
	for _, op := range calls {
		mayBeOver := slices.ContainsFunc(x.releases, func(o *history.Op) bool {
			return o != op && o.Call <= op.Return &&
				(o.Outcome != history.Failed || o.Reason == history.Lost && (o.Return >= op.Call || r.sentTwice(o)))
		}) || x.upgrade != nil && x.upgrade.Call <= op.Return
		refused := op.Outcome == history.Failed && (op.Reason == history.Lost || op.Reason == history.Busy)
		if refused && !mayBeOver && op.Return < r.sure(x, op) && !r.forgot(x.acquire.Call, op.Return) &&
			!r.sentTwice(op) && len(x.again) == 0 {
			say("%s hears %s within its lease", op.ID, op.Reason)
		}
		for _, o := range x.releases {
			switch {
			case o.Return >= op.Call || op.Outcome != history.OK || len(x.again) > 0 || r.forgot(o.Call, op.Return):
			case o.Outcome == history.OK:
				say("%s succeeded after the release %s had", op.ID, o.ID)
			case o.Outcome == history.Failed && o.Reason == history.Lost && r.h.Sites < 2:
				say("%s succeeded, though %s was told that it is lost", op.ID, o.ID)
			}
		}
	}
	r.proveLife(x, say)
}

// proveLife finds extensions of expired holds, and deadlines beyond the lease.
func (r *record) proveLife(x *held, say func(string, ...any)) {
	last, unknown := x.acquire.Return+r.most(x.acquire.TTL), false
	for _, op := range append([]*history.Op{x.acquire}, x.extends...) {
		if op.Outcome == history.OK && op.Until != 0 && op.Until != forever && op.TTL > 0 &&
			op.Until > op.Return+r.least(op.TTL)+2*r.h.Bounds.Round {
			say("%s hears of a deadline beyond its lease", op.ID)
		}
		switch {
		case op == x.acquire:
		case op.Outcome == history.OK && op.Call > last && !unknown && len(x.again) == 0 &&
			!r.forgot(x.acquire.Call, op.Return):
			say("%s succeeded after all leases were over", op.ID)
		case op.Outcome == history.OK:
			last = max(last, op.Return+r.most(op.TTL))
		case op.Outcome == history.Unknown:
			unknown = true
		}
	}
}

// sentTwice reports whether links were disturbed during a release: a library may have sent it again.
func (r *record) sentTwice(op *history.Op) bool {
	if op.Kind != history.Release {
		return false
	}
	heals := r.heals()
	for i := range r.h.Ops {
		o := &r.h.Ops[i]
		if o.Kind != history.Fault || !r.h.Faults[o.Value].Effect.Hit(history.Links) {
			continue
		}
		if end, healed := heals[o.Value]; o.Call <= op.Return && (!healed || end >= op.Call) {
			return true
		}
	}
	return false
}

// heals maps the faults' numbers to the times at which they were healed.
func (r *record) heals() map[int64]time.Duration {
	heals := map[int64]time.Duration{}
	for i := range r.h.Ops {
		if op := &r.h.Ops[i]; op.Kind == history.Heal && op.Outcome != history.Failed {
			heals[op.Value] = op.Return
		}
	}
	return heals
}
