package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var release = Checker{
	Name:    "release",
	Doc:     "only the owner can release, once, and it gets the correct answer",
	Causes:  releaseCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Owned },
	Check:   checkRelease,
}

// releaseCauses are the causes, the worst first.
var releaseCauses = []string{history.ForeignRelease, history.FalseRelease, history.DoubleRelease, history.FalseRefusal,
	history.EqualTokens}

func checkRelease(c *Case) Verdict {
	var v Verdict
	s := &releases{sweeper: newSweeper(c), repeats: c.repeated()}
	for _, holds := range c.byKey {
		told := c.tell(holds).answers()
		for at, n := range holds {
			h := &c.holds[n]
			if !told {
				s.groundless(h)
				s.contradicted(h)
			}
			op, call, over := s.answered(h)
			if op == nil {
				continue
			}
			v.Exposed++
			if told || call <= over {
				continue
			}
			if j := s.regranted(holds, at, op, over); j >= 0 {
				o := &c.holds[j]
				s.wrong(history.FalseRelease, []history.Op{*c.acquire(h), *c.acquire(o), *op}, granted(c, h),
					granted(c, o),
					fmt.Sprintf("%s was told at %s that it had released %s, which had been over since %s was granted the lock",
						who(h.Worker), clock(op.Return), c.name(h), who(o.Worker)))
			}
		}
	}
	for k := range c.slipped {
		s.told(k)
	}
	s.again()
	s.equalTokens()
	worst := s.into(&v, releaseCauses)
	switch {
	case v.Status == Fail:
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s of %s releases were answered wrongly: %s", human.Count(v.Violations),
			human.Count(max(v.Exposed, v.Violations)), v.Cause)
	case s.excused > 0:
		v.Summary = s.excuseText("wrong answers")
	case v.Exposed == 0:
		v.Summary = "no release was answered"
	default:
		v.Status = Pass
		v.Summary = none("wrong answers", v.Exposed, "releases")
	}
	return v
}

// told blames an answer, or a release, that the story of a page shows to be wrong.
func (s *releases) told(k *slip) {
	if k.Deviation == nil || k.Deviation.Claim != "owned" {
		return
	}
	h, op := &s.c.holds[k.hold], &s.c.Ops[k.op]
	evidence, story := []history.Op{*s.c.acquire(h)}, []string{granted(s.c, h)}
	if k.against >= 0 {
		o := &s.c.holds[k.against]
		evidence, story = append(evidence, *s.c.acquire(o)), append(story, granted(s.c, o))
	}
	s.blame(k.Deviation.Name, testimony{append(evidence, *op), append(story, s.c.answered(k))}, nil)
}

// answered says what a call was answered wrongly.
func (c *Case) answered(k *slip) string {
	h, op := &c.holds[k.hold], &c.Ops[k.op]
	switch {
	case k.deviates(history.FalseRefusal):
		return fmt.Sprintf("the %s of %s by %s was refused at %s (%s), although it was its own",
			op.Kind, c.name(h), who(op.Worker), clock(op.Return), op.Reason)
	case k.deviates(history.DoubleRelease):
		return fmt.Sprintf("%s was told at %s that it had released %s, which it had given back before",
			who(op.Worker), clock(op.Return), c.name(h))
	case k.deviates(history.ForeignRelease):
		return fmt.Sprintf("the release by %s was %s: it freed the lock of %s, which was not its own",
			who(op.Worker), spanned(op), who(c.holds[k.against].Worker))
	case k.against >= 0:
		return fmt.Sprintf("%s was told at %s that it had released %s, which was over: %s had been granted the lock",
			who(op.Worker), clock(op.Return), c.name(h), who(c.holds[k.against].Worker))
	}
	return fmt.Sprintf("%s was told at %s that it had released %s, which was over",
		who(op.Worker), clock(op.Return), c.name(h))
}

// releases judges what releases were answered.
type releases struct {
	*sweeper
	blames[testimony]
	repeats map[history.ID]int32 // by hold: the first release that succeeded, where the first of all had no answer
}

// wrong blames an answer. The evidence is in order.
func (s *releases) wrong(cause string, evidence []history.Op, story ...string) {
	first, last := &evidence[0], &evidence[len(evidence)-1]
	s.blame(cause, testimony{evidence, story}, s.c.accident(first.Key, first.Call, last.Return))
}

// repeated lists the releases that succeeded after one without an answer.
func (c *Case) repeated() map[history.ID]int32 {
	again := map[history.ID]int32{}
	for _, i := range c.repeats {
		op := &c.Ops[i]
		if h := c.hold(op.Hold); op.Outcome == history.OK && c.Ops[h.Release].Outcome == history.Unknown {
			if k, ok := again[op.Hold]; !ok || c.Ops[k].Call > op.Call {
				again[op.Hold] = i
			}
		}
	}
	return again
}

// answered is the release of a hold that had an answer, when it was called, and when the hold may have been over: with
// its lease, or by a release before that had none. It is nil without one.
func (s *releases) answered(h *hold) (op *history.Op, call, over time.Duration) {
	if h.Outcome != history.OK || h.Release < 0 {
		return nil, 0, 0
	}
	if h.answer != history.Unknown {
		return &s.c.Ops[h.Release], h.releaseCall, s.assured(h)
	} else if i, ok := s.repeats[s.c.acquire(h).ID]; ok {
		return &s.c.Ops[i], s.c.Ops[i].Call, min(s.assured(h), h.releaseCall)
	}
	return nil, 0, 0
}

// regranted finds a hold that was granted when the one at that place may have been over, and before its release was
// called: that release cannot have succeeded, and was answered that it had. A grant within the lease is for exclusion
// to judge.
func (s *releases) regranted(holds []int32, at int, op *history.Op, over time.Duration) int32 {
	h := &s.c.holds[holds[at]]
	if op.Outcome != history.OK || s.c.reentered(h, history.Forever, op.Return) {
		return -1
	}
	n := at + 1 + sort.Search(len(holds)-at-1, func(i int) bool { return s.c.holds[holds[at+1+i]].Call > h.Return })
	for ; n < len(holds) && s.c.holds[holds[n]].Call < op.Call; n++ {
		o := &s.c.holds[holds[n]]
		slack := s.c.slack(h.Process, o.Process)
		if o.Outcome == history.OK && s.c.clash(h.Permits, o.Permits) && o.Return > over && o.Call-slack > h.Return &&
			plus(o.Return, slack) < op.Call && !s.extendedAfter(h, o) {
			return holds[n]
		}
	}
	return -1
}

// extendedAfter tells whether an extension of h succeeded after o was granted: that is judged elsewhere, and explains
// the release.
func (s *sweeper) extendedAfter(h, o *hold) bool {
	return slices.ContainsFunc(s.c.extends(h), func(i int32) bool {
		op := &s.c.Ops[i]
		return op.Outcome == history.OK && op.Return > o.Call
	})
}

// groundless finds an owner who was refused within its lease as if another worker had the lock, or had touched it,
// although nothing was broken and it did nothing else that may have come in between. That it is not its own is for
// lease-validity to judge.
func (s *releases) groundless(h *hold) {
	if h.Outcome != history.OK {
		return
	}
	for _, i := range s.c.extends(h) {
		s.refused(h, i)
	}
	if h.Release >= 0 && h.answer == history.Failed {
		s.refused(h, h.Release)
	}
}

// contradicted finds a hold on one site that an extension was told is lost, and whose release succeeded afterwards:
// what is gone does not come back, unless a fault can have brought it.
func (s *releases) contradicted(h *hold) {
	c := s.c
	if c.Sites > 1 || h.Permits > 0 || h.Outcome != history.OK || h.Release < 0 || h.answer != history.OK {
		return
	}
	for _, i := range c.extends(h) {
		op, back := &c.Ops[i], &c.Ops[h.Release]
		if op.Kind != history.Extend || op.Outcome != history.Failed || op.Reason != history.Lost ||
			op.Return > back.Call || c.reentered(h, op.Call, back.Return) {
			continue
		}
		if w := c.forgotten(h.Key, h.Call, back.Return); w == nil || !w.fault {
			s.wrong(history.FalseRefusal, []history.Op{*op, *back},
				fmt.Sprintf("%s was told at %s that %s is not its own, but released it at %s",
					who(h.Worker), clock(op.Return), c.name(h), clock(back.Return)))
		}
		return
	}
}

func (s *releases) refused(h *hold, i int32) {
	op := &s.c.Ops[i]
	if op.Outcome != history.Failed || op.Reason != history.Busy && op.Reason != history.Conflict ||
		op.Return > s.proven(h, op) {
		return
	}
	if w := s.c.forgot(h, op.Return); w == nil || !w.fault {
		s.wrong(history.FalseRefusal, []history.Op{*s.c.acquire(h), *op},
			fmt.Sprintf("the %s of %s by %s was refused at %s (%s), although it was its own, and nothing was broken",
				op.Kind, s.c.name(h), who(op.Worker), clock(op.Return), op.Reason))
	}
}

// proven is up to when the lease lasts by what was answered before one of a hold's calls; before every time if another
// one may have had an effect while that call was under way, or gave the lock back.
func (s *releases) proven(h *hold, op *history.Op) time.Duration {
	last := s.c.acquire(h)
	end, calls := s.promised(last), s.c.extends(h)
	if h.Release >= 0 {
		calls = append(slices.Clone(calls), h.Release)
	}
	for _, i := range calls {
		o := &s.c.Ops[i]
		switch {
		case o == op || o.Call >= op.Return:
		case o.Return > op.Call || o.Outcome == history.Unknown || o.Kind == history.Release && o.Outcome == history.OK:
			return -history.Forever
		case o.Kind == history.Release || o.Outcome == history.Failed:
		case o.Call < last.Return: // either may have been the last
			end, last = min(end, s.promised(o)), o
		default:
			end, last = s.promised(o), o
		}
	}
	return end
}

// again finds holds that were released twice with success, and those whose first release was refused and whose second
// succeeded.
func (s *releases) again() {
	c, last := s.c, map[history.ID]int32{} // by hold: the last release that had an answer
	for _, i := range c.repeats {
		op := &c.Ops[i]
		h := c.hold(op.Hold)
		if h.Outcome != history.OK || c.tell(c.holdsOf(h.Key)).answers() {
			continue
		}
		first := c.Ops[h.Release]
		if n, ok := last[op.Hold]; ok {
			first = c.Ops[n]
		}
		if op.Outcome != history.Unknown {
			last[op.Hold] = i
		}
		switch {
		case first.Return > op.Call || op.Outcome != history.OK || s.c.reentered(h, first.Return, op.Return):
		case first.Outcome == history.OK:
			s.wrong(history.DoubleRelease, []history.Op{first, *op},
				fmt.Sprintf("%s released %s at %s and again at %s, both with success",
					who(op.Worker), c.name(h), clock(first.Return), clock(op.Return)))
		case first.Outcome == history.Failed && first.Reason == history.Lost:
			s.wrong(history.FalseRefusal, []history.Op{first, *op},
				fmt.Sprintf("%s was told at %s that %s is not its own, but released it at %s",
					who(op.Worker), clock(first.Return), c.name(h), clock(op.Return)))
		}
	}
}
