package checker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Exclusion judges whether two workers held the lock at the same time.
var Exclusion = Checker{
	Name: "exclusion",
	Doc: "no two holders at a time, but readers, nor more permits than there are: none believes in the lock, " +
		"nor uses it, while it is another's",
	Causes:  severity,
	Applies: func(h *history.Header) bool { return h.Claims.Excludes },
	Check:   checkExclusion,
}

// severity lists the causes, the worst first: errors of the lock before those of the service and of the holder.
var severity = []string{history.DoubleGrant, history.ForeignRelease, history.SilentReacquire, history.FalseExtension,
	history.FalseRelease, history.Regressed, history.ServiceLoss,
	history.OverClaim, history.RenewalFailure, history.PartKept, history.Phantom, history.Overrun,
	history.PrematureLoss, history.DoubleRelease, history.FalseRefusal, history.TTLTooLong, history.Leak}

// finding is one violation with its cause.
type finding struct {
	cause string
	pair  pair    // the earlier hold and the later one; -1 = none
	op    int32   // index of further evidence in Ops; -1 = none
	why   *window // the window that explains it; nil = none does

	follows bool // it is a consequence of an earlier violation
	again   bool // an earlier finding has the same origin
}

// findings is the result of the exclusion checker.
type findings struct {
	blames[finding]
	incidents map[string]int64 // cause -> violations that are not a consequence of an earlier one
	losses    []pair           // the first few grants that contradict the servers' promises
	misses    map[string]int64
	doubled   int64 // number of holds whose holder certainly relied on the lock at the same time as an earlier holder
}

const keptLosses = 8 // number of grants that are also checked by porcupine, an independent program

// examine finds all violations of exclusion. Several checkers use the result.
func (c *Case) examine() *findings {
	c.once.Do(func() {
		x := &examiner{c: c, sweeper: newSweeper(c),
			findings: findings{misses: map[string]int64{}, incidents: map[string]int64{}}}
		for _, holds := range c.byKey {
			x.key(holds)
		}
		x.phantoms()
		c.findings = x.findings
	})
	return &c.findings
}

func checkExclusion(c *Case) Verdict {
	f := c.examine()
	v := Verdict{Misses: maps.Clone(f.misses), Doubled: f.doubled}
	short := int64(0) // contended holds that are too short to prove anything, given the differences of clocks
	for i := range c.holds {
		switch h := &c.holds[i]; {
		case h.Outcome != history.OK:
		case h.Exposed:
			v.Exposed++
		case h.Contended:
			short++
		}
	}
	if short > 0 {
		v.Misses["too short"] = short
	}
	worst := f.into(&v, f.gravest(c))
	switch {
	case v.Status == Fail:
		tell(c, &v, worst)
	case f.excused > 0:
		v.Summary = f.excuseText("overlaps")
	case f.misses["possible"] > 0:
		v.Summary = fmt.Sprintf("%s overlaps are shorter than the %s by which the processes' clocks may differ",
			human.Count(f.misses["possible"]), human.Duration(c.differ()))
	case v.Exposed+short == 0:
		v.Summary = "no hold was contended"
	case short > 0 && v.Exposed < enoughHandOffs:
		v.Summary = fmt.Sprintf("%s of %s contended holds were too short to prove anything: "+
			"the processes' clocks may differ by %s",
			human.Count(short), human.Count(v.Exposed+short), human.Duration(c.differ()))
	default:
		v.Status = Pass
		v.Summary = none("violations", v.Exposed, "contended holds")
		if short > 0 {
			v.Summary += fmt.Sprintf("; %s were too short to prove anything", human.Count(short))
		}
	}
	if c.exchanged > 0 && v.Status != Fail {
		v.Summary += fmt.Sprintf("; loads show that clocks differ by at most %s, exchanges %s",
			human.Duration(c.differ()), human.Duration(c.exchanged))
	}
	return v
}

// none returns a sentence for a verdict without findings. An example is "0 violations in 300 contended holds: at most
// 1 in 100, with 95 % confidence".
func none(what string, n int64, of string) string {
	return fmt.Sprintf("0 %s in %s %s: %s", what, human.Count(n), of, atMost(n))
}

// examiner judges one key after another.
type examiner struct {
	findings
	c       *Case
	sweeper *sweeper
	blamed  map[int32]bool
	told    *account // the story of the page
}

// key finds the violations among the holds of a key. A hold is blamed once, by the strongest evidence.
func (x *examiner) key(holds []int32) {
	x.blamed = map[int32]bool{}
	x.told = x.c.tell(holds)
	s := x.sweeper
	if x.c.Claims.Permits > 0 {
		x.semaphore(holds)
	} else {
		x.pairs(holds)
	}
	x.doubles()
	s.overruns(holds, func(p pair) {
		if p.second < 0 {
			x.misses["overrun"]++
		} else {
			x.add(x.late(p))
		}
	})
}

// pairs finds overlapping holds that exclude each other.
func (x *examiner) pairs(holds []int32) {
	s, possible := x.sweeper, map[int32]bool{}
	s.beliefs(holds, func(p pair, certain bool) {
		if !certain {
			possible[p.second] = true
			return
		}
		x.blamed[p.second] = true
		x.doubled++
		x.collision(p)
	})
	// On several sites a hold begins with the last site of a majority and ends with the first one. So a hold that
	// begins late need not end late.
	coupled := x.c.Sites < 2
	groups := x.c.groups(holds)
	for _, g := range groups {
		s.scope = g.scope
		s.losses(g.holds, coupled, x.loss)
		s.proven(g.holds, coupled, x.loss)
	}
	if s.scope = asRead; len(groups) > 1 {
		s.losses(holds, coupled, func(p pair) { possible[p.second] = true })
	}
	for n := range possible {
		if !x.blamed[n] {
			x.misses["possible"]++
		}
	}
}

// late finds the cause of a store after the holder's deadline. If servers lost the counter of fencing tokens, they are
// to blame. If a fence accepted the store otherwise, the tokens are not in the order of the grants. In all other cases
// the holder stored too late. It is excused if its process was paused for at least half of the time by which the store
// was late.
func (x *examiner) late(p pair) finding {
	h, o := &x.c.holds[p.first], &x.c.holds[p.second]
	if w := x.c.unfenced(h, o); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	if x.sweeper.regressed(h, o) {
		return finding{cause: history.Regressed, pair: p, op: h.Uses[1]}
	}
	if x.c.Claims.Renews && h.Lost > h.stored && h.back() > h.stored { // the lock had to renew it
		return x.unrenewed(p)
	}
	return finding{cause: history.Overrun, pair: p, op: h.Uses[1],
		why: x.c.overran(h.Process, h.Return, h.given(), h.stored, (h.stored-h.given())/2)}
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

// loss handles a grant that contradicts the servers' promises to an earlier hold.
func (x *examiner) loss(p pair) {
	if len(x.losses) < keptLosses {
		x.losses = append(x.losses, p)
	}
	if !x.blamed[p.second] {
		x.blamed[p.second] = true
		x.add(x.worst(p))
	}
}

// worst returns the finding for a pair. If the pair has an excuse, it also looks at the other readers that the same
// writer collided with, and prefers a finding without an excuse. An event may excuse a writer's grant beside one
// reader, but not beside another one.
func (x *examiner) worst(p pair) finding {
	f := x.broken(p)
	for q := range x.besides(p) {
		if f.why == nil {
			break
		}
		if g := x.broken(q); g.why == nil || unplanned(f.why) != nil && g.why.fault {
			f = g
		}
	}
	return x.c.shown(f)
}

// broken finds the cause of a broken promise. It tries four causes in this order. First, a release of a hold that was
// over, if holds share the lock. Second, a slip in the page's story that explains the pair. Third, servers that forgot
// the first hold. Otherwise it is a double grant.
func (x *examiner) broken(p pair) finding {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	t, chain := x.told, []pair{p}
	for q := range x.sweeper.before(p) {
		chain = append(chain, q)
	}
	if t.shared && !t.untold {
		if op := t.freed(x.c, i.Call, j.Return); op >= 0 {
			return finding{cause: history.ForeignRelease, pair: p, op: op}
		}
		var holds []int32
		for _, q := range chain {
			holds = append(holds, q.first, q.second)
		}
		t = x.c.among(holds)
	}
	for _, q := range chain {
		if f, ok := x.c.names(t, q); ok {
			return f
		}
	}
	if w := x.c.forgot(i, x.c.knownBy(j)); w != nil {
		return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
	}
	for q := range x.sweeper.before(p) { // if servers kept the hold before the pair, the pair's first hold began later
		if w := x.c.forgot(&x.c.holds[q.first], x.c.holds[q.second].Return); w != nil {
			return finding{cause: history.ServiceLoss, pair: p, op: w.op, why: w}
		}
	}
	return finding{cause: history.DoubleGrant, pair: p, op: -1}
}

// knownBy is the time by which a hold was granted if it was. Without an answer to its Acquire, that may have been at
// any time until its release.
func (c *Case) knownBy(h *hold) time.Duration {
	if h.Outcome != history.OK && h.Release >= 0 {
		return max(h.Return, c.Ops[h.Release].Return)
	}
	return h.Return
}

// collision finds the cause if two holders relied on the lock at the same time.
func (x *examiner) collision(p pair) {
	i, j := &x.c.holds[p.first], &x.c.holds[p.second]
	s := x.sweeper
	over := s.assured(i)
	if n := x.told.of(p); n >= 0 && x.told.slips[n].deviates(history.SilentReacquire) {
		x.add(x.worst(p))
		return
	}
	if plus(j.Return, x.c.slack(i.Process, j.Process)) < over {
		x.add(x.worst(p))
		return
	}
	// the first lease had ended, so its holder should not have relied on the lock
	if x.c.Claims.Renews && i.Until > over {
		if f := x.unrenewed(p); f.cause != history.Overrun || i.stored != history.Forever && i.stored > j.Return {
			x.add(f)
		} else {
			x.misses["overrun"]++ // the process was paused, and the holder was told before it stored
		}
		return
	}
	// the deadline may have been right: servers would have kept the lock until then, but they forgot it
	kept := i.Until <= s.latest(i) && x.c.forgot(i, j.Return) != nil
	if proof := x.c.proof(i, history.Forever); i.Until > over && !kept {
		x.add(finding{cause: history.OverClaim, pair: p, op: -1,
			why: x.c.late(i.Process, proof.Call, proof.Return, proof.Return, i.Until-over)})
		return
	}
	x.add(x.worst(p))
}

// proof is the call from which the lease of a hold counts at a moment: its Acquire, or its last successful extension.
func (c *Case) proof(h *hold, by time.Duration) *history.Op {
	if n := lastProof(c, h, by); n >= 0 {
		return &c.Ops[n]
	}
	return c.acquire(h)
}

// unrenewed finds the cause if a lease ended although its holder relied on it: the process was paused, or the lock
// failed to renew.
func (x *examiner) unrenewed(p pair) finding {
	i := &x.c.holds[p.first]
	if op := x.c.presumed(i); op >= 0 {
		return finding{cause: history.OverClaim, pair: p, op: op}
	}
	proof, over := x.c.proof(i, history.Forever), x.sweeper.assured(i)
	since, least := proof.Return, enough(i, proof.Return, over)
	if over-since < Margin(i.TTL) {
		since = proof.Call // when the answer came, too little of the lease was left
	}
	w := x.c.stopped(i.Process, since, over, least)
	// If renewals have no answer, or are not recorded, the last one may have been late. The library learns of the loss
	// when it renews again. So the lease ended at most one lease before the other grant.
	granted := x.c.holds[p.second].Return
	if from := max(since, minus(granted, 2*i.TTL)); w == nil && x.c.unsettled(i, from, granted) {
		w = x.c.stopped(i.Process, from, granted, Margin(i.TTL))
	}
	if w != nil {
		return finding{cause: history.Overrun, pair: p, op: -1, why: w}
	}
	return finding{cause: history.RenewalFailure, pair: p, op: -1, why: x.c.late(i.Process, since, over, over, least)}
}

// unsettled reports whether an extension without an answer was in progress between two moments. It may have renewed
// the hold.
func (c *Case) unsettled(h *hold, from, to time.Duration) bool {
	return slices.ContainsFunc(c.extends(h), func(n int32) bool {
		op := &c.Ops[n]
		return op.Outcome == history.Unknown && op.Call < to && op.Return > from
	})
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
