package checker

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// findWindows lists the windows in the order in which they began to have an effect.
func (c *Case) findWindows() {
	open := map[int64]int{} // number of a fault -> index in c.windows, plus one
	for _, i := range c.events {
		op := &c.Ops[i]
		w := window{period: period{op.Call, op.Return}, op: i, heal: -1, note: c.Notes[op.ID]}
		switch op.Kind {
		case history.Fault:
			f := &c.Faults[op.Value]
			w.name, w.effect, w.fault, w.failed = f.Name, &f.Effect, true, op.Outcome == history.Failed
			if c.Session && f.Effect.CutsLinks() && f.Effect.Loses == history.NoLoss {
				e := f.Effect
				e.Loses, w.effect = history.LosesKeys, &e // sessions may end with their connections
			}
			if w.to = max(w.to, f.To); f.ByHand || c.Partial != "" {
				w.to = history.Forever // until the end of the fault (its heal) is found
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
			w.name, w.effect = "the machine paused for "+human.Duration(op.Return-op.Call), stoodFor
		case history.Incident:
			w.name, w.effect = fmt.Sprintf("node %d failed without a planned fault", op.Value),
				c.serverEffect(op.Value, failing)
		case history.Role:
			w.name, w.effect = fmt.Sprintf("node %d took another role without a planned fault", op.Value),
				c.serverEffect(op.Value, changing)
		default:
			continue
		}
		if !w.fault && w.note != "" {
			w.name, w.note = w.note, "" // the note names the node
		}
		c.windows = append(c.windows, w)
	}
	all := c.windows
	c.failovers(all)
	c.strangers(all)
	c.windows = c.dropPlanned(all)
	c.findPauses(all)
	c.addUp()
	c.lingers = c.Sites > 1 || c.Claims.Ordered || c.Claims.Writers || c.Claims.Wakes || len(c.windows) > 0 &&
		slices.ContainsFunc(c.Ops, func(op history.Op) bool {
			return op.Woken == history.Signal || op.Woken == history.LeaseEnd
		})
	c.findLosses()
}

// failovers extends the window of a promotion until the former primary is a replica of the new one. Until then the
// former primary goes on serving, and its grants will be lost.
func (c *Case) failovers(all []window) {
	// shown: the time by which the role itself had changed
	roles, shown := map[history.ID]*window{}, map[history.ID]time.Duration{}
	for i := range all {
		w, op := &all[i], &c.Ops[all[i].op]
		if op.Kind != history.Role {
			continue
		}
		roles[op.ID], shown[op.ID] = w, w.to
		if promotion := roles[op.Seen]; promotion != nil && w.from <= plus(shown[op.Seen], mostFailover) {
			promotion.to = max(promotion.to, w.to)
		}
	}
}

// serverEffect is the possible effect on the lock of a server's unplanned event: none if it is the counter's server.
func (c *Case) serverEffect(node int64, alone *history.Effect) *history.Effect {
	switch {
	case c.Nodes > 0 && node >= int64(c.Nodes) || c.Sites > 1 && node >= int64(c.Sites):
		return counting
	case c.Sites > 1:
		return ofASite
	}
	return alone
}

// addUp finds faults that left no majority although each of them alone would leave one. Another fault was in force at
// the same time, or less than a lease before. Sites that come back execute requests that clients have given up, and
// the grants of these requests last for a lease. Before the first call there were no requests.
func (c *Case) addUp() {
	var alone []*window
	for i := range c.windows {
		if w := &c.windows[i]; w.effect.Known() && w.effect.Spares && w.to >= c.begin {
			alone = append(alone, w)
		}
	}
	for _, w := range alone {
		if slices.ContainsFunc(alone, func(v *window) bool {
			same := v == w || !v.fault && !w.fault && c.Ops[v.op].Value == c.Ops[w.op].Value // the same node
			return !same && v.from <= w.from && plus(v.to, c.lease) >= w.from
		}) {
			e := *w.effect
			e.Spares = false
			w.effect = &e
		}
	}
}

// strangers finds faults that, as the recorded pauses show, stopped only processes without workers. Such a fault
// affects nobody.
func (c *Case) strangers(all []window) {
	for i := range all {
		f := &all[i]
		stopped := func(w window) bool {
			return c.Ops[w.op].Kind == history.Gap && c.Ops[w.op].Value == 0 && w.meets(f.from, f.to)
		}
		died := func(op history.Op) bool { return op.Kind == history.Crash && f.from <= op.Call && op.Call <= f.to }
		if f.fault && slices.Equal(f.effect.Hits, []history.Party{history.Clients}) &&
			slices.ContainsFunc(all, stopped) &&
			!slices.ContainsFunc(all, func(w window) bool { return stopped(w) && c.working[c.Ops[w.op].Process] }) &&
			!slices.ContainsFunc(c.Ops, died) {
			f.effect = counting
		}
	}
}

// dropPlanned removes events that faults explain. These are role changes while a server is down and replaced (not
// while it only hangs, or has a wrong clock), and pauses of processes that a fault stopped. It also removes pauses of
// processes without workers.
func (c *Case) dropPlanned(all []window) (list []window) {
	// faults are few, while gaps may be many
	faults := slices.DeleteFunc(slices.Clone(all), func(w window) bool { return !w.fault })
	for _, w := range all {
		expected := c.Ops[w.op].Kind == history.Gap && !c.reachesWorkers(&c.Ops[w.op])
		for _, f := range faults {
			switch op := &c.Ops[w.op]; {
			case op.Kind == history.Role:
				expected = expected || f.effect.BreaksPromises() && f.effect.Loses != history.LosesTime &&
					w.meets(f.from, plus(f.to, c.recovery()))
			case op.Kind != history.Gap || !f.effect.Hit(history.Clients) || !w.meets(f.from, f.to):
			case plus(w.from, c.Bounds.Gap) < f.from:
				w.to = min(w.to, f.from) // the pause had begun before the fault
			default:
				expected = true
			}
		}
		if !expected {
			list = append(list, w)
		} else if c.Ops[w.op].Kind == history.Role {
			if w.fault = true; c.losing(w.effect) { // the losses by this role change count as planned
				c.roles = append(c.roles, &w)
			}
		}
	}
	return list
}
