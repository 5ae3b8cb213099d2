package checker

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/history"
)

// ended returns what ended a hold on its server, as the server's replication stream shows; nil if that is unknown. It
// must have happened before the moment `by`, or before the token next was written. The stream is read with a delay, so
// it decides no verdict. It only shows the cause of violations that are proven without it.
func (c *Case) ended(h *hold, by time.Duration, next uint64) *history.EarlyEnd {
	token := c.acquire(h).Token
	if c.Measured == nil || c.Measured.Stream == nil || c.Sites > 1 || token == 0 {
		return nil
	}
	for i := range c.Measured.Stream.Early {
		e := &c.Measured.Stream.Early[i]
		if e.Token == token && e.At > h.Call && (e.At < by || e.Next != 0 && e.Next == next) {
			return e
		}
	}
	return nil
}

// endedFirst returns the hold of a pair that its server ended before the other hold was granted, and its end. The end
// is nil if none is known.
func (c *Case) endedFirst(p pair) (h *hold, e *history.EarlyEnd) {
	i, j := &c.holds[p.first], &c.holds[p.second]
	if e = c.ended(i, min(j.Return, (&ruler{c: c}).assured(i)), c.acquire(j).Token); e != nil {
		return i, e
	}
	if j.Call < i.Return { // both asked at the same time
		e = c.ended(j, i.Return, c.acquire(i).Token)
	}
	return j, e
}

// shown replaces the cause of a double grant or a premature loss, if the server's replication stream shows a more
// exact one.
func (c *Case) shown(f finding) finding {
	if f.cause != history.DoubleGrant && f.cause != history.PrematureLoss {
		return f
	}
	h, e := c.endedFirst(f.pair)
	if e == nil || endCause(e) == "" {
		return f
	}
	if f.cause, f.op = endCause(e), -1; e.Extended {
		f.op = lastProof(c, h, e.At)
	}
	return f
}

// endCause returns the cause that follows from the early end of a hold; empty if the server only had a shorter lease.
// All commands that put another token in the place of the hold's have SET in their names.
func endCause(e *history.EarlyEnd) string {
	switch {
	case e.By != history.Expiry && strings.Contains(e.By, "SET"):
		return history.DoubleGrant
	case e.By != history.Expiry:
		return history.ForeignRelease
	case e.Extended:
		return history.FalseExtension
	}
	return ""
}

// endedText says how a hold ended in its server.
func (c *Case) endedText(h *hold, e *history.EarlyEnd) string {
	switch {
	case e.Extended:
		return fmt.Sprintf("in %s the lease of %s was over at %s already: it was not made longer", e.Node, c.name(h),
			clock(e.At))
	case e.By == history.Expiry:
		return fmt.Sprintf("in %s the lease of %s was over at %s already: it is shorter there than the lock says",
			e.Node, c.name(h), clock(e.At))
	case endCause(e) == history.DoubleGrant:
		return fmt.Sprintf("at %s, %s put token %s in the place of that of %s in %s: the acquire is not atomic",
			clock(e.At), e.By, short(e.Next), who(h.Worker), e.Node)
	}
	return fmt.Sprintf("at %s, %s deleted %s in %s, and its holder had not released it", clock(e.At), e.By, c.name(h),
		e.Node)
}

const askAMajority = "Grant the lock only if more than half of all sites have it, those included that did not " +
	"answer. See locks/catalogue/redlock.go."

// minority describes, in words, a hold of a pair that was granted on too few sites, as the sites' replication streams
// show; empty if none is known.
func (c *Case) minority(p pair) string {
	if c.Measured == nil || c.Measured.Stream == nil {
		return ""
	}
	for _, n := range [2]int32{p.first, p.second} {
		h := &c.holds[n]
		for _, m := range c.Measured.Stream.Minority {
			if m.Token == c.acquire(h).Token {
				return fmt.Sprintf("%s was granted %s on %d of %d sites, which is no majority", who(h.Worker),
					c.name(h), m.Sites, c.Sites)
			}
		}
	}
	return ""
}
