package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// tell writes a finding into a verdict: summary, story and evidence.
func tell(c *Case, v *Verdict, f finding) {
	if f.cause == history.Phantom || f.cause == history.PartKept {
		tellPhantom(c, v, f)
		return
	}
	i, j := &c.holds[f.pair.first], &c.holds[f.pair.second]
	r, what := ruler{c: c}, c.overlap(f, i, j)
	times := human.Quantity(v.Violations, "time")
	if n := c.examine().incidents[f.cause]; n > 0 && n < v.Causes[f.cause] {
		times = fmt.Sprintf("%s after %s", times, human.Quantity(n, "incident"))
	}
	v.Summary = fmt.Sprintf("%s, %s in %s; %s and %s at %s: %s", what, times,
		human.Quantity(max(v.Exposed, v.Violations), "hold"), who(i.Worker), who(j.Worker), clock(j.Return), f.cause)
	v.Evidence = append(v.Evidence, *c.acquire(i), *c.acquire(j))
	v.Story = append(v.Story, granted(c, i), promise(&r, i))
	if c.Claims.Permits > 0 {
		for _, n := range c.others(f.pair) {
			v.Evidence = append(v.Evidence, *c.acquire(&c.holds[n]))
			v.Story = append(v.Story, granted(c, &c.holds[n]))
		}
	}
	if n := lastProof(c, i, history.Forever); n >= 0 && f.cause != history.SilentReacquire {
		did := "extended"
		if c.Ops[n].Kind == history.Acquire {
			did = "re-entered"
		}
		v.Story = append(v.Story,
			fmt.Sprintf("%s %s %s at %s", who(i.Worker), did, c.name(i), clock(c.Ops[n].Return)))
	}
	if f.op >= 0 && f.cause != history.ServiceLoss && f.cause != history.Overrun && f.cause != history.Regressed {
		v.Evidence = append(v.Evidence, c.Ops[f.op])
	}
	grant := second(c, j, f.op >= 0 && f.op == j.Release)
	switch { // in the order of their effects
	case f.cause != history.ForeignRelease:
		v.Story = append(v.Story, grant)
	case f.op >= 0 && f.op == i.Release:
		v.Story = append(v.Story, grant, freeingText(c, &r, f))
	default:
		v.Story = append(v.Story, freeingText(c, &r, f), grant)
	}
	why, remedy, known := consequence(c, &r, f)
	v.Story = append(v.Story, why...)
	if known {
		v.advise(remedy)
	}
	if n := i.use(c); n >= 0 && (f.cause == history.Overrun || f.cause == history.Regressed ||
		c.Ops[n].Call > j.Return) {
		v.Evidence = append(v.Evidence, c.Ops[n])
		v.Story = append(v.Story, used(&c.Ops[n], i, j))
	}
	slices.SortStableFunc(v.Evidence, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	v.Story = append(v.Story, disturbed(c, i.Call, j.Return)...)
}

// overlap says what is wrong about two grants. A holder may have given up the lock before another was granted it.
func (c *Case) overlap(f finding, i, j *hold) string {
	switch n := c.Claims.Permits; {
	case n > 0:
		return fmt.Sprintf("more than %d permits were held at once", n)
	case i.Worker == j.Worker:
		return "a worker was granted the lock while it had it"
	case i.lapse() <= j.Return && f.cause == history.ServiceLoss:
		return "a worker was granted the lock within the lease of another that did not rely on it any more"
	}
	return "two workers held the lock at once"
}

// freeingText says whose release freed the lock of another worker.
func freeingText(c *Case, r *ruler, f finding) string {
	i, j := &c.holds[f.pair.first], &c.holds[f.pair.second]
	if f.op < 0 {
		return c.endedText(c.endedFirst(f.pair))
	}
	op, victim := &c.Ops[f.op], i
	if f.op == i.Release {
		victim = j
	}
	freed := "it freed the lock of " + who(victim.Worker) + ", which was not its own"
	switch {
	case c.Claims.Permits > 0:
		freed = "what it released was not its own, and since then there has been a permit too many"
	case f.op != i.Release && c.Claims.Owned && op.Latency() >= patientCall && op.Hold != 0 &&
		r.assured(c.hold(op.Hold)) > i.Return:
		freed = fmt.Sprintf("when %s was granted the lock, its own was free, or never its own: it freed that one",
			who(i.Worker))
	}
	if op.Hold == 0 {
		return fmt.Sprintf("%s, which held nothing, called a release that was %s: it freed the lock of %s",
			who(op.Worker), spanned(op), who(victim.Worker))
	}
	return fmt.Sprintf("the release by %s was %s: %s", who(op.Worker), spanned(op), freed)
}

// disturbed lists faults and events between two moments.
func disturbed(c *Case, from, to time.Duration) (story []string) {
	for n := range c.windows {
		switch w := &c.windows[n]; {
		case !w.meets(from, to):
		case w.fault:
			story = append(story, "the fault "+w.String())
		case !c.hitch(w):
			story = append(story, "meanwhile "+w.String())
		}
	}
	return story
}

// second says in words what the second holder was told. The argument blamed says that this hold's own release is the
// violation; then its grant is not proven.
func second(c *Case, j *hold, blamed bool) string {
	switch {
	case j.Outcome == history.OK:
		return granted(c, j)
	case blamed:
		return fmt.Sprintf("%s had asked for the lock at %s and got no answer: it may never have been granted",
			who(j.Worker), clock(j.Call))
	}
	return fmt.Sprintf("%s asked for the lock at %s and got no answer, but %s existed: its release succeeded",
		who(j.Worker), clock(j.Call), c.name(j))
}

// use returns the most informative operation of a hold on the counter: its store, or a load that a fence rejected; -1
// if none exists.
func (h *hold) use(c *Case) int32 {
	if n := h.Uses[0]; h.Uses[1] < 0 && n >= 0 && c.Ops[n].Reason == history.Fenced {
		return n
	}
	return h.Uses[1]
}

// used says how the first holder used the page while the second one held the lock.
func used(op *history.Op, i, j *hold) string {
	did := "stored"
	if op.Kind == history.Load {
		did = "read"
	}
	if op.Reason == history.Fenced {
		did = "was refused by the counter, for its fencing token is an older one,"
	}
	return fmt.Sprintf("%s %s at %s, when the lock had been granted to %s", who(i.Worker), did, clock(op.Call),
		who(j.Worker))
}

func tellPhantom(c *Case, v *Verdict, f finding) {
	a, b := c.Ops[f.pair.first], c.Ops[f.op]
	v.Summary = fmt.Sprintf("reported as refused although the token was in the servers: %s: %s",
		human.Quantity(v.Causes[f.cause], "acquire"), f.cause)
	v.Evidence = []history.Op{a, b}
	v.Story = []string{fmt.Sprintf("%s was told at %s that token %s was refused (%v)", who(a.Worker), clock(a.Return),
		short(a.Token), a.Reason)}
	switch b.Kind {
	case history.Sight:
		if b.Token != a.Token {
			v.Summary = fmt.Sprintf("reported as refused although it had made the key: %s: %s",
				human.Quantity(v.Causes[f.cause], "acquire"), f.cause)
			v.Story[0] = fmt.Sprintf("%s was told at %s that it was refused (%v)", who(a.Worker), clock(a.Return),
				a.Reason)
			v.Story = append(v.Story,
				fmt.Sprintf("at %s token %s of no call was seen on node %d, to expire at %s: "+
					"so it was set at about %s, when that try was asking",
					clock(b.Call), short(b.Token), b.Value, clock(b.Until), clock(b.Until-a.TTL)))
			return
		}
		v.Story = append(v.Story, fmt.Sprintf("at %s that token was seen on node %d, to expire at %s", clock(b.Call),
			b.Value, clock(b.Until)))
	case history.Found:
		v.Story = append(v.Story, fmt.Sprintf("after the run that token was found on node %d, to expire at %s", b.Value,
			clock(b.Until)))
	default:
		v.Story = append(v.Story, fmt.Sprintf("%s succeeded to %v it at %s", who(b.Worker), b.Kind, clock(b.Return)))
	}
}

// promise says in words until when the first hold excluded all others.
func promise(r *ruler, h *hold) string {
	over := r.assured(h)
	s := "it never expires"
	if over != history.Forever {
		s = fmt.Sprintf("so no other worker may hold it before %s", clock(over))
		if h.Permits > 0 {
			s = fmt.Sprintf("so no worker may hold what that excludes before %s", clock(over))
		}
		if r.c.Bounds.Rate > 0 {
			s += fmt.Sprintf(" (clocks within %.2g %%)", 100*r.c.Bounds.Rate)
		}
	}
	switch h.ending {
	case returned:
		s += fmt.Sprintf(", and it was released at %s", clock(h.releaseCall))
	case maybe:
		s += fmt.Sprintf(", or its release, called at %s, whose effect is unknown", clock(h.releaseCall))
	case gone:
		s += fmt.Sprintf("; its release, called at %s, was told that it was no longer its own", clock(h.releaseCall))
	}
	return s
}

// consequence says why two holds are a violation, and who is to blame. If known is true, the result remedy replaces
// the usual remedy of the cause; an empty remedy means that the history does not show what is wrong.
func consequence(c *Case, r *ruler, f finding) (story []string, remedy string, known bool) {
	if i := &c.holds[f.pair.first]; f.cause == history.Overrun && i.releaseCall < i.stored {
		return []string{fmt.Sprintf("%s released the lock at %s, and stored after that", who(i.Worker),
			clock(i.releaseCall))}, "Store before the release, and only when the lock was granted.", true
	} else if f.cause != history.DoubleGrant {
		return whyOf(c, r, f), "", false
	}
	if h, e := c.endedFirst(f.pair); e != nil {
		if remedy = ofTheCause; e.By == history.Expiry {
			remedy = keepTheExpiry
		}
		return []string{c.endedText(h, e)}, remedy, remedy != ofTheCause
	}
	if text := c.minority(f.pair); text != "" {
		return []string{text}, askAMajority, true
	}
	story, remedy = doubled(c, r, f, &c.holds[f.pair.first], &c.holds[f.pair.second])
	return story, remedy, remedy != ofTheCause
}

// whyOf says why two holds are a violation, if the cause is known.
func whyOf(c *Case, r *ruler, f finding) []string {
	i, j := &c.holds[f.pair.first], &c.holds[f.pair.second]
	extended := f.cause == history.SilentReacquire || f.cause == history.FalseExtension
	if extended && c.Ops[f.op].Worker == j.Worker && i.Worker != j.Worker {
		i, j = j, i // the second holder's extension is to blame
	}
	switch f.cause {
	case history.ServiceLoss:
		return []string{fmt.Sprintf("the service broke its promise to %s after a fault", who(i.Worker))}
	case history.PrematureLoss:
		if h, e := c.endedFirst(f.pair); e != nil {
			return []string{c.endedText(h, e)}
		}
		return []string{fmt.Sprintf("the lease of %s ended before its time, and nothing explains that", who(i.Worker))}
	case history.OverClaim:
		return []string{fmt.Sprintf("%s believed in the lock until %s, %s longer than the lease was sure to last",
			who(i.Worker), clock(i.trusted()), longer(i.trusted(), r.assured(i)))}
	case history.RenewalFailure:
		story := fmt.Sprintf("%s was alive and nothing renewed its lease", who(i.Worker))
		if i.Lost == history.Forever {
			story += ", nor told it that: does the renewal go on after an error, and tell its holder when it ends?"
		}
		return []string{story}
	case history.SilentReacquire:
		op := &c.Ops[f.op]
		if op.Outcome == history.Unknown {
			return []string{fmt.Sprintf("%s released with success what was over when %s was granted it: "+
				"its extension at %s, which had no answer, had taken it back",
				who(i.Worker), who(j.Worker), clock(op.Call))}
		}
		return []string{fmt.Sprintf("%s extended its hold at %s, after it was over: that took the lock away from %s",
			who(i.Worker), clock(op.Return), who(j.Worker))}
	case history.FalseExtension:
		op := &c.Ops[f.op]
		return []string{fmt.Sprintf("%s was told at %s that it had the lock for longer, but %s was granted it when "+
			"the lease before that may have been over", who(i.Worker), clock(op.Return), who(j.Worker))}
	case history.FalseRelease:
		op := &c.Ops[f.op]
		return []string{fmt.Sprintf("%s was told that its release, %s, had succeeded, but it had not the lock then, "+
			"and no other lost it: nothing was released", who(op.Worker), spanned(op))}
	case history.Regressed:
		return []string{fmt.Sprintf("the lock was granted to %s first, but its fencing token, %d, "+
			"is greater than that of %s, %d: the counter cannot refuse its late store",
			who(i.Worker), c.acquire(i).Fence, who(j.Worker), c.acquire(j).Fence)}
	case history.Overrun:
		return []string{fmt.Sprintf("the lock was honest: %s was told to believe in it until %s and went on after "+
			"that; only fencing helps", who(i.Worker), clock(min(i.Until, i.Lost)))}
	}
	return nil
}

func longer(a, b time.Duration) string {
	if a == history.Forever {
		return "endlessly"
	}
	return human.Duration(a - b)
}
