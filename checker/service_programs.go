package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// judgePrograms judges the programs of a service. None may end without a planned fault. While all of them run and no
// fault is in force, the service must answer. It counts as down if, at the end of the run, it answered no visit for at
// least the time that a visit waits.
func judgePrograms(c *Case) Verdict {
	if c.Measured == nil || c.Measured.Programs == 0 {
		return Verdict{Status: NotJudged, Summary: "the suite started no program of the service"}
	}
	v := Verdict{Exposed: int64(c.Measured.Programs)}
	visits, lasted := c.unservedVisits()
	switch ended := c.Measured.Ended; {
	case len(ended) > 0:
		v.Status, v.Cause, v.Violations = Fail, history.Panicked, int64(len(ended))
		v.Summary = fmt.Sprintf("%s of the service ended without a planned fault: %s",
			human.Quantity(v.Violations, "program"), v.Cause)
		v.Story = ended
	case len(visits) > 0 && c.Wait > 0 && lasted >= c.Wait && c.Partial == "":
		v.Status, v.Cause, v.Violations = Fail, history.Stuck, int64(len(visits))
		v.Summary = fmt.Sprintf("the service was down for the last %s: %s; a visit is waited for %s",
			human.Duration(lasted), answersOf(visits), human.Duration(c.Wait))
		first := slices.MinFunc(visits, func(a, b *history.Op) int { return cmp.Compare(a.Call, b.Call) })
		v.Evidence = []history.Op{*first}
		v.Story = []string{
			fmt.Sprintf("%s visited page %d at %s; the service acknowledged neither this visit nor a later one",
				who(first.Worker), first.Key, clock(first.Call)),
			"all programs of the service were up, and no fault was at work any more"}
		v.advise("Let the service find its way back: reconnect to its servers, and give up locks that a program left " +
			"behind when it was killed.")
	default:
		v.Status, v.Summary = Pass, "no program of the service ended, and none was up in vain"
	}
	return v
}

// unservedVisits returns the visits since the last acknowledgement, refusal or fault, and the time since then, without
// pauses of the machine. If a fault was still in force at the end, it returns nothing.
func (c *Case) unservedVisits() (visits []*history.Op, lasted time.Duration) {
	var from, end time.Duration
	for i := range c.windows {
		switch w := &c.windows[i]; {
		case !w.fault:
		case w.heal < 0:
			return nil, 0
		default:
			from = max(from, w.to)
		}
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind != history.Store || op.Return == history.Forever {
			continue
		}
		end = max(end, op.Return)
		if op.Outcome == history.OK || op.Reason == history.Refused {
			from = max(from, op.Return)
		}
	}
	for i := range c.Ops {
		if op := &c.Ops[i]; op.Kind == history.Store && op.Call >= from {
			visits = append(visits, op)
		}
	}
	lasted = end - from
	for i := range c.windows {
		if w := &c.windows[i]; !w.fault {
			lasted -= max(min(w.to, end)-max(w.from, from), 0)
		}
	}
	return visits, lasted
}
