package checker

import (
	"fmt"
	"slices"
)

// All lists the checkers in the order in which their verdicts are shown.
var All = []Checker{
	Activity,
	Exclusion,
	lostUpdates,
	fencing,
	leaseValidity,
	release,
	calls,
	liveness,
	reentrancy,
	once,
	fairness,
	linearizable,
}

// Judge returns the verdict of every checker. An error says that checkers contradict each other, so that no verdict can
// be trusted.
func Judge(c *Case) ([]Verdict, error) {
	all := All
	if c.Header.Service {
		all = OfServices
	}
	verdicts, unrecorded := make([]Verdict, 0, len(all)), c.Unrecorded()
	var wrong error
	for _, k := range all {
		why := c.Unseen[k.Name]
		if k.Applies != nil && !k.Applies(&c.Header) {
			why = "the lock does not claim it"
		}
		if why != "" {
			verdicts = append(verdicts, Verdict{Checker: k.Name, Status: NotJudged, Summary: why})
			continue
		}
		v := k.Check(c)
		c.scratch.Free()
		v.Checker = k.Name
		c.nameCallers(&v)
		c.namePages(&v)
		if c.Wire != "" && k.Name == Activity.Name {
			v.Summary += "; as seen on the wire: " + c.Wire
		}
		if c.apart != nil && (v.Status == Pass || v.Status == Inconclusive) {
			v.Status, v.Summary = Inconclusive, c.apart.Error()
		}
		if unrecorded != "" && slices.Contains(needsExtensions, k.Name) &&
			(v.Status != Fail || slices.Contains(endsOfLeases, v.Cause)) {
			v = Verdict{Checker: k.Name, Summary: unrecorded, Exposed: v.Exposed, HandOffs: v.HandOffs,
				Misses: v.Misses, Extent: v.Extent}
		}
		if v.Status == Inconclusive && v.scant && slices.Contains(c.NotAbout, k.Name) {
			v.Status, v.Summary = NotJudged, "the run is not about it: "+v.Summary
		}
		if v.Cause == harnessError {
			wrong = fmt.Errorf("an error of the checkers themselves: %s", v.Summary)
		}
		verdicts = append(verdicts, v)
	}
	if c.Measured != nil && c.Measured.Wear != nil {
		verdicts = append(verdicts, weighWear(c))
	}
	return WithMeasured(verdicts, c.Measured, &c.Header, c.ttl), wrong
}
