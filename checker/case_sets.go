package checker

import (
	"fmt"
	"regexp"
	"strconv"

	"hammerlock/history"
)

// mark returns a number that identifies a hold: its token. If the pages of a visit may have the same token, the number
// also depends on the key.
func (c *Case) mark(token uint64, key int32) uint64 {
	if token == 0 || !c.Claims.Sets {
		return token
	}
	return max(token^(uint64(key)+1)*0x9e3779b97f4a7c15, 1)
}

// partial reports whether an Acquire is part of a call for several pages: another Acquire of its caller
// was in progress.
func (c *Case) partial(op *history.Op) bool {
	if !c.Claims.Sets {
		return false
	}
	if c.several == nil {
		c.several = map[history.ID]bool{}
		last := map[int32]*history.Op{} // by caller
		for i := range c.Ops {
			op := &c.Ops[i]
			if op.Kind != history.Acquire || op.Worker < 0 {
				continue
			}
			who := c.Caller(op.Worker)
			if other := last[who]; other != nil && other.Return > op.Call {
				c.several[op.ID], c.several[other.ID] = true, true
			}
			last[who] = op
		}
	}
	return c.several[op.ID]
}

// phantom is the cause for a refused Acquire that took effect. If it was part of a call for several pages, it may have
// left one of these pages locked.
func (c *Case) phantom(op *history.Op) string {
	if c.partial(op) {
		return history.PartKept
	}
	return history.Phantom
}

// joint is the number under which liveness judges a page. If visits take several pages, an idle page may have waiters
// that wait for another page. So all pages together count as one, which is idle if no worker holds any page.
func (c *Case) joint(key int32) int32 {
	if c.Claims.Sets {
		return min(key, 0)
	}
	return key
}

// called returns the name that a story uses for a joint number.
func (c *Case) called(joint int32) string {
	if c.Claims.Sets {
		return "all pages"
	}
	return fmt.Sprintf("page %d", joint)
}

var workerName = regexp.MustCompile(`\bw\d+\b`)

// nameCallers replaces worker numbers in a verdict: the parts of a visit to several pages get the number of its worker.
func (c *Case) nameCallers(v *Verdict) {
	if c.Callers == 0 {
		return
	}
	caller := func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		return who(c.Caller(int32(n)))
	}
	v.Summary = workerName.ReplaceAllStringFunc(v.Summary, caller)
	for i, line := range v.Story {
		v.Story[i] = workerName.ReplaceAllStringFunc(line, caller)
	}
}
