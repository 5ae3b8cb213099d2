package checker

import (
	"fmt"
	"slices"

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

func checkRelease(c *Case) Verdict {
	var v Verdict
	s := &releases{sweeper: newSweeper(c)}
	for i := range c.holds {
		h := &c.holds[i]
		if h.Outcome == history.OK && h.Release >= 0 &&
			(h.answer != history.Unknown || c.succeeds(c.sentAgain[int32(i)])) {
			v.Exposed++
		}
	}
	for k := range c.slipped {
		s.told(k)
	}
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

// told blames an answer or a release that is wrong in the story of its page.
func (s *releases) told(k *slip) {
	if k.Deviation == nil || k.Deviation.Claim != "owned" {
		s.excuses(k)
		return
	}
	var t testimony
	for _, n := range []int32{k.hold, k.against} {
		if n >= 0 {
			h := &s.c.holds[n]
			t.evidence, t.story = append(t.evidence, *s.c.acquire(h)), append(t.story, granted(s.c, h))
		}
	}
	t.evidence, t.story = append(t.evidence, s.c.Ops[k.op]), append(t.story, s.c.answered(k))
	s.blame(k.Deviation.Name, t, nil)
}

// answered says what was wrong with an answer.
func (c *Case) answered(k *slip) string {
	op := &c.Ops[k.op]
	if k.hold < 0 {
		return unheldText(c, k)
	}
	h := &c.holds[k.hold]
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

// unheldText says what a release by a worker that held nothing did.
func unheldText(c *Case, k *slip) string {
	op := &c.Ops[k.op]
	text := fmt.Sprintf("%s, which held nothing, called a release that was %s", who(op.Worker), spanned(op))
	if k.against >= 0 {
		text += ": it freed the lock of " + who(c.holds[k.against].Worker)
	}
	return text
}

// excuses counts answers that an unplanned event explains: servers forgot a hold, and then its release succeeded, or
// was refused because the lock was another's.
func (s *releases) excuses(k *slip) {
	if k.Deviation != nil || k.why.fault {
		return
	}
	h := &s.c.holds[k.hold]
	for _, n := range slices.Concat(s.c.extends(h), []int32{h.Release}, s.c.sentAgain[k.hold]) {
		if n < 0 || s.c.Ops[n].Return < k.At {
			continue
		}
		switch op := &s.c.Ops[n]; {
		case op.Kind == history.Release && op.Outcome == history.OK:
			s.blame(history.FalseRelease, testimony{evidence: []history.Op{*s.c.acquire(h), *op}}, k.why)
		case op.Outcome == history.Failed && (op.Reason == history.Busy || op.Reason == history.Conflict):
			s.blame(history.FalseRefusal, testimony{evidence: []history.Op{*s.c.acquire(h), *op}}, k.why)
		}
	}
}

func (c *Case) succeeds(calls []int32) bool {
	return slices.ContainsFunc(calls, func(n int32) bool { return c.Ops[n].Outcome == history.OK })
}
