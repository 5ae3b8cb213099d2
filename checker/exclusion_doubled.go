package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Advice for a double grant, depending on what the story shows.
const (
	ofTheCause = "the remedy of the cause"
	notShown   = ""
	shareALock = "Keep the lock in servers that all processes share, or run one process. " +
		"See locks/catalogue/lease.go."
	drawTokens = "Draw a token of its own for every grant, and ask the servers for every grant. " +
		"See locks/catalogue/lease.go."
	keepTheExpiry = "Set the expiry of the key to the lease that the holder counts on, and let no try take or change " +
		"a key that is there. See locks/catalogue/lease.go."
)

// doubled says what is known about an unexplained double grant, and what to do.
func doubled(c *Case, r *ruler, f finding, i, j *hold) (story []string, remedy string) {
	if n := c.unseenKeys(); n > 0 && i.Process != j.Process {
		return []string{fmt.Sprintf("%s is in process %d, %s in process %d, "+
			"and none of %s into the servers found a key of the lock: what a process keeps in its memory "+
			"excludes no other process",
			who(i.Worker), i.Process, who(j.Worker), j.Process, human.Quantity(n, "look"))}, shareALock
	}
	for _, h := range [2]*hold{j, i} {
		if k := c.sameToken(h); k != nil {
			return []string{fmt.Sprintf("%s had been granted to %s before, at %s: the servers may not have been "+
				"asked again, or did not tell the two apart",
				c.name(h), who(k.Worker), clock(k.Return))}, drawTokens
		}
	}
	together := i.Call < j.Return && j.Call < i.Return
	if together && c.share(i, j) {
		return []string{fmt.Sprintf("both have token %s: the servers cannot tell the two apart",
			short(c.acquire(i).Token))}, drawTokens
	}
	if text := c.suspect(i, j); text != "" {
		return []string{"cause not shown: " + text}, notShown
	}
	if together {
		return append(c.mistaken(j), "both asked at the same time, no lease was over and no fault of "+
			"a server explains it: the acquire is not atomic"), ofTheCause
	}
	if n := c.unheard(i, i.Return, j.Return); n >= 0 {
		return []string{fmt.Sprintf("cause not shown: the extension by %s that was called at %s had no answer, "+
			"and may have given the lock back",
			who(i.Worker), clock(c.Ops[n].Call))}, notShown
	}
	if n := lastProof(c, i, j.Return); n >= 0 && c.Ops[n].Call > i.Return {
		what := "extension"
		if c.Ops[n].Kind == history.Acquire {
			what = "re-entry"
		}
		return []string{fmt.Sprintf("cause not shown: the %s by %s, which succeeded at %s, "+
			"may have made the lease shorter, or ended it: look at what it sets",
			what, who(i.Worker), clock(c.Ops[n].Return))}, notShown
	}
	kept := r.refusedFor(i, i.Return, j.Call)
	if op := c.unansweredTry(i, j); op != nil && (kept < 0 || op.Return > c.Ops[kept].Call) {
		return append(c.mistaken(j),
			fmt.Sprintf("cause not shown: the try by %s that was called at %s had no answer: "+
				"look whether what the lock sends after that ends what %s had",
				who(op.Worker), clock(op.Call), who(i.Worker))), notShown
	}
	if kept >= 0 {
		return append(c.mistaken(j),
			fmt.Sprintf("%s was still refused at %s, so the lock was kept until then: its lease is shorter in the "+
				"servers than the lock says, or another took it before it was over",
				who(c.Ops[kept].Worker), clock(c.Ops[kept].Return))), keepTheExpiry
	}
	return append(c.mistaken(j),
		"cause not shown: two grants at once, no expiry, no release and no fault in between"), notShown
}

// suspect describes, in words, a release between the grants to i and to j that may have ended more than it should;
// empty if none exists.
func (c *Case) suspect(i, j *hold) string {
	if op := c.innerRelease(i, j.Return); op != nil {
		return fmt.Sprintf("%s released an inner level at %s: look whether that ends the outer ones, too",
			who(i.Worker), clock(op.Return))
	}
	if op := c.releasedBeside(i, j); op != nil {
		return fmt.Sprintf("%s released what it shared with %s at %s, in between: look whether that ends what others "+
			"have, and whether the acquire is one atomic step", who(op.Worker), who(i.Worker), clock(op.Return))
	}
	return ""
}

// innerRelease returns the last successful release of an inner level of a hold before a moment; nil if none exists. It
// also returns nil if a later extension or re-entry succeeded, which shows that the hold went on.
func (c *Case) innerRelease(h *hold, by time.Duration) *history.Op {
	proof := lastProof(c, h, by)
	for _, n := range slices.Backward(c.reenters(h)) {
		if op := &c.Ops[n]; op.Kind == history.Release && op.Outcome == history.OK && op.Call < by &&
			(proof < 0 || op.Return > c.Ops[proof].Return) {
			return op
		}
	}
	return nil
}

// releasedBeside is the last release by a third holder that shared the lock with i, between the grants to i and to j;
// nil if none exists.
func (c *Case) releasedBeside(i, j *hold) (last *history.Op) {
	if i.Permits == 0 {
		return nil
	}
	for _, n := range c.holdsOf(i.Key) {
		k := &c.holds[n]
		if k == i || k == j || k.Permits == 0 || k.Release < 0 {
			continue
		}
		op := &c.Ops[k.Release]
		meanwhile := op.Return > i.Call && op.Call < j.Return
		if op.Outcome == history.OK && meanwhile && (last == nil || op.Return > last.Return) {
			last = op
		}
	}
	return last
}

// unseenKeys is the number of searches on the servers that found no key of the lock; 0 if one of them found a key.
func (c *Case) unseenKeys() int64 {
	if c.Measured == nil {
		return 0
	}
	return c.Measured.Unseen
}

// unansweredTry returns the last try by a third worker that had no answer; nil if none exists. The try must have ended
// while i held the lock, and before j was granted it.
func (c *Case) unansweredTry(i, j *hold) (last *history.Op) {
	for n := range c.Ops {
		op := &c.Ops[n]
		if op.Kind == history.Acquire && op.Key == i.Key && op.Outcome == history.Unknown && op.Worker != i.Worker &&
			op.Worker != j.Worker && op.Return > i.Call && op.Return < j.Return {
			last = op
		}
	}
	return last
}

// mistaken warns that a late answer may be taken for the answer to another call. It does so if calls of the hold's
// process had no answer by the time of the grant.
func (c *Case) mistaken(h *hold) []string {
	n := 0
	for i := range c.Ops {
		op := &c.Ops[i]
		called := op.Kind == history.Acquire || op.Kind == history.Extend && op.Hold != 0 || op.Kind == history.Release
		if called && op.Outcome == history.Unknown && op.Process == h.Process && op.Return < h.Return {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s of the process of %s had no answer by then: make sure that none that comes late "+
		"is taken for the answer to another call",
		human.Quantity(n, "call"), who(h.Worker))}
}

// sameToken is an earlier hold of the page that has the same token; nil if none exists.
func (c *Case) sameToken(h *hold) *hold {
	for _, n := range c.holdsOf(h.Key) {
		if k := &c.holds[n]; k != h && c.share(k, h) && k.Outcome == history.OK && k.Return <= h.Call {
			return k
		}
	}
	return nil
}

// unheard returns the last extension of a hold that was called between two moments and had no answer; -1 if none
// exists. It may have given the lock back, because some libraries release a lock that they cannot extend.
func (c *Case) unheard(h *hold, from, by time.Duration) int32 {
	for _, n := range slices.Backward(c.extends(h)) {
		if op := &c.Ops[n]; op.Outcome == history.Unknown && op.Call >= from && op.Call < by {
			return n
		}
	}
	return -1
}
