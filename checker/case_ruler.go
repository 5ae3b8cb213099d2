package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// ruler computes when holds may have begun and ended. Its times may be history.Forever.
type ruler struct {
	c     *Case
	scope scope
}

// plus adds a duration to a time; Forever if that is too late for a time.
func plus(t, d time.Duration) time.Duration {
	if t == history.Forever || d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// minus subtracts a duration from a time; Forever minus anything is Forever.
func minus(t, d time.Duration) time.Duration {
	switch {
	case t == history.Forever:
		return t
	case d == history.Forever:
		return -history.Forever
	}
	return t - d
}

// believed is the period in which the holder relies on the lock: from the grant to the earliest of release call,
// deadline, loss signal and crash. METHOD.md calls it the belief.
func (h *hold) believed() (from, to time.Duration) { return h.Return, h.trusted() }

// lapse is the time at which the holder stops relying on the lock if it does not release it: the earliest of deadline,
// loss signal and crash.
func (h *hold) lapse() time.Duration { return min(h.Until, h.Lost, h.Crashed) }

// trusted is the time until which the holder relies on the lock. If the hold was upgraded, that is the answer to
// the upgrade.
func (h *hold) trusted() time.Duration { return min(h.lapse(), h.back()) }

// back is the time at which a holder gave the lock back: it called Release, or learned that the hold was upgraded.
func (h *hold) back() time.Duration {
	if h.upgraded {
		return h.releaseReturn
	}
	return h.releaseCall
}

// assured is the earliest end of a lease that is not released: T1, the shortest life of a lease, after its last
// proof. A proof is the call of the Acquire or of a successful extension. If extensions overlap, any of them may
// have been the last. An extension without an answer may have shortened the lease, to its own TTL from the time at
// which it took effect.
func (r *ruler) assured(h *hold) time.Duration {
	end, next, proof := history.Forever, history.Forever, time.Duration(0)
	for _, n := range slices.Backward(r.c.extends(h)) {
		op := &r.c.Ops[n]
		if op.Outcome == history.Failed {
			continue
		}
		if op.Outcome == history.OK && op.Return < next && next != history.Forever {
			return end
		}
		if op.Outcome == history.OK {
			next, proof = min(next, op.Call), max(proof, op.Call)
		}
		end = min(end, r.promisedFrom(op, max(op.Call, proof)))
	}
	if next != history.Forever {
		return end
	}
	return min(end, r.granted(h))
}

// latest is the latest end of a lease; Forever if it is unknown.
func (r *ruler) latest(h *hold) time.Duration {
	end := history.Forever
	if h.Outcome == history.OK {
		end = plus(h.Return, r.c.rules.Most(h.TTL))
	}
	for _, n := range r.c.extends(h) {
		switch op := &r.c.Ops[n]; op.Outcome {
		case history.OK:
			end = max(end, plus(op.Return, r.c.rules.Most(op.TTL)))
		case history.Unknown:
			end = history.Forever
		}
	}
	return end
}

// granted is the earliest end of the lease that an Acquire began.
func (r *ruler) granted(h *hold) time.Duration {
	if h.TTL > 0 && !r.c.Claims.Begins { // the same result as below, without reading the operation
		return plus(h.Call, r.c.rules.Least(h.TTL))
	}
	return r.promised(r.c.acquire(h))
}

// promised is the earliest end of the lease that a call began: T1, the shortest life of a lease, after the call. If
// the requested TTL is not recorded, or if leases may begin before the call, it is the holder's deadline.
func (r *ruler) promised(op *history.Op) time.Duration { return r.promisedFrom(op, op.Call) }

func (r *ruler) promisedFrom(op *history.Op, call time.Duration) time.Duration {
	end := plus(call, r.c.rules.Least(op.TTL))
	switch {
	case !r.c.Claims.Expires:
	case op.TTL == 0 && op.Until != 0:
		return op.Until
	case r.c.Claims.Begins && op.Kind == history.Acquire && (op.Until == 0 || op.Until == history.Forever):
		return op.Call // the beginning of the lease is unknown
	case r.c.Claims.Begins && op.Until != 0 && op.Until != history.Forever:
		return min(op.Until, end)
	}
	return end
}

const (
	asRead     scope = iota // clocks are compared as they are: those of one process
	onMachine               // clocks of the processes of one machine
	everywhere              // all clocks
)

// scope says which clocks are compared with each other, and thus how much they may differ.
type scope uint8

// half is the largest error of the clock of a hold's process. Two clocks differ by at most the sum of their errors.
func (r *ruler) half(h *hold) time.Duration {
	c := r.c
	switch {
	case r.scope == asRead || c.Processes < 2:
		return 0
	case int(h.Process) >= len(c.Bounds.Doubts):
		return c.Bounds.Slack / 2
	}
	d := c.Bounds.Doubts[h.Process]
	if r.scope == onMachine {
		d.Offset = 0
	}
	return min(d.Own+d.Offset, c.Bounds.Slack)
}
