package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// mostAnswers is roughly the number of answers that promptness samples.
const mostAnswers = 1 << 16

// seesLateness tells whether the history has all pauses of 2 ms or more, so that no delay of the machine goes unseen.
// In virtual time this is always so.
func (c *Case) seesLateness() bool { return c.Bounds.Gap > 0 && c.Bounds.Gap <= leastPatience }

// promptness is a latency: an error that comes within it is certainly no fault of a slow machine. Three of four
// answers take longer. If no call had an answer, it is the median of the pings to the lock's program.
func (c *Case) promptness() time.Duration {
	if c.prompt > 0 {
		return c.prompt
	}
	var took []time.Duration
	for i, every := 0, len(c.Ops)/mostAnswers+1; i < len(c.Ops); i += every {
		if op := &c.Ops[i]; awaited(op) && op.Return != history.Forever && op.Reason != history.Canceled &&
			!endedInError(op) {
			took = append(took, op.Latency())
		}
	}
	c.prompt = leastPatience
	if slices.Sort(took); len(took) > 0 {
		c.prompt = max(c.prompt, took[len(took)/4])
	} else if m := c.Measured; m != nil && m.Driver != nil {
		c.prompt = max(c.prompt, m.Driver.Median)
	}
	return c.prompt
}

// endedInError tells whether a call ended in an error of the lock, rather than in a regular answer such as "busy".
func endedInError(op *history.Op) bool {
	refused := op.Outcome == history.Failed && op.Reason == history.Refused
	unsupported := op.Outcome == history.Failed && op.Reason == history.Other && op.Kind == history.Extend
	return (vainly(op) || refused) && !unsupported && op.Reason != history.Crashed && op.Reason != history.Canceled
}

// vainly reports whether a call ended in an error of the lock, rather than in a regular answer.
func vainly(op *history.Op) bool {
	return op.Outcome == history.Unknown && op.Reason != history.Busy || op.Outcome == history.Failed &&
		(op.Reason == history.Other || op.Reason == history.Unreachable)
}
