package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// leastPatience is a time after which no client has given up a request yet.
const leastPatience = 2 * time.Millisecond

// mostAnswers is about how many answers are used to find out how long they take.
const mostAnswers = 1 << 16

// seesLateness tells whether every delay that matters was recorded, as in virtual time.
func (c *Case) seesLateness() bool { return c.Bounds.Gap > 0 && c.Bounds.Gap <= leastPatience }

// promptness is how fast an error must come to be certainly no fault of the machine: as fast as three in four answers
// or, if no call had an answer, within half of a typical ping of the lock's program.
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
