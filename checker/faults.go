package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// window is a period in which something was at work that no lock answers for: a fault, or what nobody had planned: a
// server that ended by itself, a process that stood still.
type window struct {
	period
	op, heal int32 // into Ops; heal is -1 if it was never healed
	name     string
	note     string
	effect   *history.Effect
	fault    bool // it was injected
	failed   bool // it could not be injected, and may have had an effect all the same
}

// The effects of what nobody had planned.
var (
	unplanned = &history.Effect{} // it may have done anything
	stoodFor  = &history.Effect{Hits: []history.Party{history.Clients, history.Holders}, Blocks: true}
)

// findWindows lists what was at work, in the order in which it began to show.
func (c *Case) findWindows() {
	open := map[int64]int{} // by the number of the fault, plus one
	for _, i := range c.events {
		op := &c.Ops[i]
		w := window{period: period{op.Call, op.Return}, op: i, heal: -1, note: c.Notes[op.ID]}
		switch op.Kind {
		case history.Fault:
			f := &c.Faults[op.Value]
			w.name, w.effect, w.fault, w.failed = f.Name, &f.Effect, true, op.Outcome == history.Failed
			if f.To > 0 || f.ByHand || c.Partial != "" {
				w.to = history.Forever // unless it is healed
			}
			open[op.Value] = len(c.windows) + 1
		case history.Heal:
			if n := open[op.Value]; n > 0 {
				c.windows[n-1].heal, c.windows[n-1].to = i, op.Return
				if op.Outcome == history.Failed {
					c.windows[n-1].to = history.Forever
				}
				delete(open, op.Value)
			}
			continue
		case history.Gap:
			c.gaps = append(c.gaps, i)
			w.name, w.effect = "the machine stood still for "+human.Duration(op.Return-op.Call), stoodFor
		case history.Incident:
			w.name, w.effect = fmt.Sprintf("node %d failed by itself", op.Value), unplanned
		case history.Role:
			w.name, w.effect = fmt.Sprintf("node %d took another role by itself", op.Value), unplanned
		default:
			continue
		}
		if !w.fault && w.note != "" {
			w.name, w.note = w.note, "" // the words name the node
		}
		c.windows = append(c.windows, w)
	}
	c.windows = c.dropPlanned(c.windows)
	c.addUp()
	c.lingers = c.Sites > 1 || c.Claims.Ordered || c.Claims.Writers || len(c.windows) > 0 && slices.ContainsFunc(c.Ops, func(op history.Op) bool {
		return op.Woken == history.Signal || op.Woken == history.LeaseEnd
	})
}

// addUp says of a fault that it left no majority, although it would have done so alone, if another one was at work at the
// same time or less than a lease before: what clients gave up to wait for came about when the sites were back, and stays
// there until its lease is over.
func (c *Case) addUp() {
	var alone []*window
	for i := range c.windows {
		if w := &c.windows[i]; w.effect.Known() && w.effect.Spares {
			alone = append(alone, w)
		}
	}
	for _, w := range alone {
		if slices.ContainsFunc(alone, func(v *window) bool {
			return v != w && v.from <= w.from && plus(v.to, c.lease) >= w.from
		}) {
			e := *w.effect
			e.Spares = false
			w.effect = &e
		}
	}
}

// dropPlanned takes out what was to be expected of the faults: roles change where another server takes the place of one that
// is out, which one that only hangs is not, and a process that a fault stops stands still.
func (c *Case) dropPlanned(all []window) (list []window) {
	faults := slices.DeleteFunc(slices.Clone(all), func(w window) bool { return !w.fault }) // few, where gaps may be many
	for _, w := range all {
		expected := false
		for _, f := range faults {
			switch op := &c.Ops[w.op]; {
			case op.Kind == history.Role:
				expected = expected || f.effect.BreaksPromises() && w.meets(f.from, plus(f.to, c.recovery()))
			case op.Kind == history.Gap:
				expected = expected || f.effect.Hit(history.Clients) && w.meets(f.from, f.to)
			}
		}
		if !expected {
			list = append(list, w)
		}
	}
	return list
}

// unknownRecovery is what a deployment is given that does not say how long it needs.
const unknownRecovery = 5 * time.Second

func (c *Case) recovery() time.Duration { return cmp.Or(c.Bounds.Recovery, unknownRecovery) }

// String names the fault with its times.
func (w *window) String() string {
	s := fmt.Sprintf("%s from %s", w.name, clock(w.from))
	if w.to != history.Forever {
		s += " to " + clock(w.to)
	}
	if w.note != "" {
		s += ": " + w.note
	}
	return s
}

// explained returns the first window, of those that can do it, that was at work between two moments, or so shortly before
// that it may still have been felt. A fault comes before what nobody planned: it was asked for.
func (c *Case) explained(from, to, felt time.Duration, can func(*history.Effect) bool) *window {
	var other *window
	for i := range c.windows {
		w := &c.windows[i]
		if !can(w.effect) || w.from > to || plus(w.to, felt) < from {
			continue
		}
		if w.fault {
			return w
		}
		other = cmp.Or(other, w)
	}
	return other
}

// brokenPromise finds what may have made the servers give up, between two moments, what they had granted for ttl.
func (c *Case) brokenPromise(from, to, ttl time.Duration) *window {
	return c.explained(from, to, c.longest(ttl), (*history.Effect).BreaksPromises)
}

// accident finds what nobody had planned and that may have made the servers give up, between two moments, what they had
// granted for ttl. A fault that can have done so, too, comes first.
func (c *Case) accident(from, to, ttl time.Duration) *window {
	if w := c.brokenPromise(from, to, ttl); w != nil && !w.fault {
		return w
	}
	return nil
}

// Margin is how long a process may stand still without that being an explanation for a lease of so long that was not
// renewed.
func Margin(ttl time.Duration) time.Duration { return ttl / 10 }

// stoodStill finds that a process stood still, for at least so long in all, between two moments; nil if it did not.
func (c *Case) stoodStill(process int16, from, to, least time.Duration) *window {
	if sum := c.stood(process, from, to); sum == 0 || sum < least {
		return nil
	}
	for i := range c.windows {
		if w := &c.windows[i]; c.Ops[w.op].Kind == history.Gap && w.meets(from, to) {
			return w
		}
	}
	return nil
}

// stood is how long a process stood still, in all, between two moments, beyond what faults asked for.
func (c *Case) stood(process int16, from, to time.Duration) (sum time.Duration) {
	for i := range c.windows {
		if n := c.windows[i].op; c.Ops[n].Kind == history.Gap {
			sum += c.stoodIn(n, process, from, to)
		}
	}
	return sum
}

// stillFor is for how long a process stood still between two moments, also because a fault asked for it.
func (c *Case) stillFor(process int16, from, to time.Duration) (sum time.Duration) {
	for _, i := range c.gaps {
		sum += c.stoodIn(i, process, from, to)
	}
	return min(sum, to-from)
}

// stoodIn is how much of a gap of a process lies between two moments; 0 if it is another's.
func (c *Case) stoodIn(gap int32, process int16, from, to time.Duration) time.Duration {
	op := &c.Ops[gap]
	if op.Process != process && op.Value == 0 {
		return 0
	}
	return max(0, min(op.Return, to)-max(op.Call, from))
}

// clock writes a time of the run.
func clock(t time.Duration) string {
	if t == history.Forever {
		return "for ever"
	}
	return fmt.Sprintf("%.6f s", t.Seconds())
}

// who names a worker.
func who(worker int32) string {
	if worker < 0 {
		return "the suite"
	}
	return fmt.Sprintf("w%02d", worker)
}

// name names a hold: by its token in a few digits if it has one.
func (h *hold) name() string {
	if h.Token == 0 {
		return "hold " + h.ID.String()
	}
	return fmt.Sprintf("token %04x", h.Token>>48)
}
