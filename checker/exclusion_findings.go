package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// severity lists the causes, the worst first: errors of the lock before those of the service and of the holder.
var severity = []string{history.DoubleGrant, history.ForeignRelease, history.SilentReacquire, history.FalseExtension,
	history.FalseRelease, history.Regressed, history.ServiceLoss,
	history.OverClaim, history.RenewalFailure, history.PartKept, history.Phantom, history.Overrun,
	history.PrematureLoss, history.DoubleRelease, history.FalseRefusal, history.TTLTooLong, history.Leak}

const keptLosses = 8 // number of grants that are also checked by porcupine, an independent program

// examiner judges one key after another.
type examiner struct {
	findings
	c       *Case
	sweeper *sweeper
	blamed  map[int32]bool
	told    *account // the story of the page
}

// add counts a violation. If an unplanned event explains it, the lock is excused. The witness of a cause is its
// earliest violation that is no consequence of another one.
func (x *examiner) add(f finding) {
	if !x.blame(f.cause, f, unplanned(f.why)) {
		return
	}
	if !f.follows && !f.again {
		x.incidents[f.cause]++
	}
	if x.c.began(f) < x.c.began(x.first[f.cause]) {
		x.first[f.cause] = f
	}
}

// began is the time at which a violation began; Forever for a consequence of another violation.
func (c *Case) began(f finding) time.Duration {
	switch {
	case f.follows:
		return history.Forever
	case f.pair.second < 0:
		return c.Ops[f.op].Return
	}
	return c.holds[f.pair.second].Return
}

// knownBy is the time by which a hold was granted if it was. Without an answer to its Acquire, that may have been at
// any time until its release.
func (c *Case) knownBy(h *hold) time.Duration {
	if h.Outcome != history.OK && h.Release >= 0 {
		return max(h.Return, c.Ops[h.Release].Return)
	}
	return h.Return
}

// gravest sorts all causes by party: first those of the lock, then of the service, then of the holder. Within a party,
// the cause with the most incidents comes first. If two have the same number, the one that began earlier comes first.
func (f *findings) gravest(c *Case) []string {
	order := slices.Clone(severity)
	slices.SortStableFunc(order, func(a, b string) int {
		n := cmp.Or(cmp.Compare(partyOf(a), partyOf(b)), cmp.Compare(f.incidents[b], f.incidents[a]))
		if n == 0 && f.incidents[a] > 0 {
			n = cmp.Compare(c.began(f.first[a]), c.began(f.first[b]))
		}
		return n
	})
	return order
}

// presumed returns the index of the extension without an answer that gave the holder its deadline; -1 if an answer
// gave it.
func (c *Case) presumed(h *hold) int32 {
	told, last := c.acquire(h).Until, int32(-1)
	for _, n := range c.extends(h) {
		switch op := &c.Ops[n]; op.Outcome {
		case history.OK:
			told = max(told, op.Until)
		case history.Unknown:
			if op.Until == h.Until {
				last = n
			}
		}
	}
	if told >= h.Until {
		return -1
	}
	return last
}

// share tells whether two holds have the same token, so that an extension cannot tell them apart.
func (c *Case) share(h, o *hold) bool {
	token := c.acquire(h).Token
	return token != 0 && token == c.acquire(o).Token
}

// unsettled reports whether an extension without an answer was in progress between two moments. It may have renewed
// the hold.
func (c *Case) unsettled(h *hold, from, to time.Duration) bool {
	return slices.ContainsFunc(c.extends(h), func(n int32) bool {
		op := &c.Ops[n]
		return op.Outcome == history.Unknown && op.Call < to && op.Return > from
	})
}
