package checker

import (
	"slices"
	"time"

	"hammerlock/history"
)

// errorReasons are the reasons of calls that ended in an error, or had no answer.
var errorReasons = []history.Reason{history.Unreachable, history.Refused, history.Timeout, history.Dropped,
	history.Other}

// extent computes what the history tested. The argument met says which faults coincided with a holder or waiter.
func (c *Case) extent(met []bool) *Extent {
	t := &Extent{Lease: c.ttl, Workers: c.workers, Keys: c.keys, Errors: []string{}, Faults: []string{},
		Claims: []string{}}
	for _, works := range c.working {
		if works {
			t.Processes++
		}
	}
	if m := c.Measured; m != nil && m.Driver != nil {
		t.ClockUnread = m.Driver.ClockUnread
	}
	var end time.Duration
	var seen [history.Other + 1]bool
	for i := range c.Ops {
		op := &c.Ops[i]
		end = max(end, op.Latest())
		if op.Kind == history.Acquire || op.Kind == history.Extend || op.Kind == history.Release ||
			c.Header.Service && op.Kind == history.Store {
			seen[op.Reason] = true
		}
	}
	for _, r := range errorReasons {
		if seen[r] {
			t.Errors = append(t.Errors, r.String())
		}
	}
	c.waits(func(w *wait) { t.Wait = max(t.Wait, min(w.stop, end)-w.start) })
	for i := range c.holds {
		if h := &c.holds[i]; h.Outcome == history.OK {
			held := min(h.trusted(), end) - h.Return
			t.Hold = max(t.Hold, held)
			extended := 0
			for _, x := range c.extends(h) {
				if c.Ops[x].Outcome == history.OK {
					extended++
				}
			}
			if c.Claims.Renews && h.TTL > 0 {
				extended = max(extended, int(held/h.TTL))
			}
			t.Renewals = max(t.Renewals, extended)
		}
	}
	for i, f := range c.Faults {
		if met[i] && !slices.Contains(t.Faults, f.Name) {
			t.Faults = append(t.Faults, f.Name)
		}
	}
	for i := range history.AllClaims {
		if k := &history.AllClaims[i]; len(k.Judges) > 0 && k.Of(&c.Claims) && !c.Header.Service {
			t.Claims = append(t.Claims, k.Name)
		}
	}
	return t
}
