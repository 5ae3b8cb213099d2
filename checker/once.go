package checker

import (
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

var once = Checker{
	Name: "once",
	Doc: "a key that stands for a tick is granted once until its lease is over, also after its release, and at least " +
		"once if it is asked for",
	Causes:  onceCauses,
	Applies: func(h *history.Header) bool { return h.Claims.Once },
	Check:   judgeOnce,
}

// onceCauses lists the causes of failed verdicts of this checker, the worst first.
var onceCauses = []string{history.RunTwice, history.LeftOut, history.ServiceLoss}

// tick is what happened to the key of one tick of a schedule.
type tick struct {
	asked   int64       // number of tries
	granted *history.Op // the certain grant whose lease lasts longest
	unsure  bool        // a try without an answer may have been granted
	refused *history.Op // the first try that was refused because another worker has it
}

// judgeOnce judges each key independently. If no grant is known, a try without an answer may have been granted, and so
// may a try that a partial history has lost. Nothing else excuses a tick that no worker was granted: no server invents
// a key that was never set.
func judgeOnce(c *Case) Verdict {
	v := Verdict{Summary: "fewer than two workers asked for the same tick"}
	ticks, b := make([]tick, c.keys), blames[testimony]{}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind != history.Acquire || op.Key < 0 || !op.Outermost() {
			continue
		}
		t := &ticks[op.Key]
		switch t.asked++; {
		case op.Outcome == history.OK:
			first := t.granted
			if first != nil && c.during(op, first) && c.during(first, op) {
				b.blame(c.again(first, op))
			}
			if first == nil || c.sure(op) > c.sure(first) {
				t.granted = op
			}
		case op.Outcome == history.Unknown:
			t.unsure = true
		case op.Refused() && t.refused == nil:
			t.refused = op
		}
	}
	unknown := int64(0)
	for i := range ticks {
		t := &ticks[i]
		if t.asked > 1 && t.granted == nil && t.unsure {
			unknown++
		}
		if t.asked > 1 {
			v.Exposed++
		}
		if t.granted == nil && !t.unsure && t.refused != nil && c.Partial == "" {
			b.blame(history.LeftOut, testimony{[]history.Op{*t.refused}, []string{fmt.Sprintf(
				"%s was told at %s that another worker has page %d, which no worker was ever granted, in %s",
				who(t.refused.Worker), clock(t.refused.Return), t.refused.Key, human.Quantity(t.asked, "call"))}},
				nil)
		}
	}
	worst := b.into(&v, onceCauses)
	switch {
	case v.Status == Fail:
		v.Evidence, v.Story = worst.evidence, worst.story
		v.Summary = fmt.Sprintf("%s in %s: %s", human.Quantity(v.Violations, "violation"),
			human.Quantity(v.Exposed, "tick"), v.Cause)
	case b.excused > 0:
		v.Summary = b.excuseText("ticks that ran twice or not at all")
	case v.Exposed >= enoughHandOffs:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s, %s; %s", human.Quantity(v.Exposed, "tick"), ran(unknown), atMost(v.Exposed))
	default:
		if v.scant = true; v.Exposed > 0 {
			v.Summary = fmt.Sprintf("%s that two workers asked for, at least %d are needed",
				human.Quantity(v.Exposed, "tick"), enoughHandOffs)
		}
	}
	return v
}

// ran says how often the ticks of a passed verdict ran, if so many of them have no known grant.
func ran(unknown int64) string {
	if unknown > 0 {
		return fmt.Sprintf("none run twice or left out, %s without a known grant", human.Count(unknown))
	}
	return "each run once"
}

// sure is the earliest end of a grant's lease if no worker releases it. A lock for ticks keeps a tick for the
// requested lease, even if it does not claim that its holds expire.
func (c *Case) sure(grant *history.Op) time.Duration {
	if grant.TTL <= 0 {
		return history.Forever
	}
	return grant.Call + max(grant.TTL-c.rules.Drift(grant.TTL), 0)
}

// during reports whether a grant was known before the lease of another grant had ended. The other grant may be the
// earlier or the later one.
func (c *Case) during(grant, other *history.Op) bool {
	return grant.Return+c.slack(grant.Process, other.Process) < c.sure(other)
}

// again returns what to blame for two grants of the same tick. Servers may have forgotten the first grant.
func (c *Case) again(first, second *history.Op) (cause string, t testimony, why *window) {
	cause = history.RunTwice
	w := c.forgotten(first.Key, min(first.Call, second.Call), max(first.Return, second.Return))
	if w != nil && w.fault {
		cause = history.ServiceLoss
	}
	story := func(op *history.Op) string {
		return fmt.Sprintf("%s was granted page %d at %s for %s", who(op.Worker), op.Key, clock(op.Return),
			human.Duration(op.TTL))
	}
	return cause, testimony{[]history.Op{*first, *second}, []string{story(first), story(second)}}, unplanned(w)
}
