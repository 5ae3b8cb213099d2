package checker

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// reachesWorkers tells whether a pause affects workers or messages. The suite's own process may have no workers. Its
// pauses still matter if it has network proxies, which a planned fault uses, or the proxy of a watched program.
func (c *Case) reachesWorkers(gap *history.Op) bool {
	if gap.Value == 0 {
		return c.working[gap.Process]
	}
	return c.Wire != "" || slices.ContainsFunc(c.Faults, func(f history.Injection) bool {
		return f.Effect.Known() && f.Effect.Hit(history.Links)
	})
}

// findPauses sorts the pauses by process: all of them into c.pauses, and those that no fault has caused
// into c.unasked.
func (c *Case) findPauses(all []window) {
	c.pauses, c.unasked = c.pausesOf(all), c.pausesOf(c.windows)
}

func (c *Case) pausesOf(windows []window) []pauses {
	lists := make([][]stoppage, c.processes)
	for i := range windows {
		w := &windows[i]
		switch op := &c.Ops[w.op]; {
		case op.Kind != history.Gap || !c.reachesWorkers(op):
		case op.Value == 0:
			lists[op.Process] = append(lists[op.Process], stoppage{w.period, w})
		default:
			for p := range lists {
				lists[p] = append(lists[p], stoppage{w.period, w})
			}
		}
	}
	of := make([]pauses, len(lists))
	for p, list := range lists {
		slices.SortFunc(list, func(a, b stoppage) int { return cmp.Compare(a.from, b.from) })
		sum := time.Duration(0)
		for _, x := range list {
			q := &of[p]
			if n := len(q.list); n > 0 && q.list[n-1].to >= x.from {
				if more := x.to - q.list[n-1].to; more > 0 {
					q.list[n-1].to += more
					sum += more
					q.until[n-1] = sum
				}
				continue
			}
			sum += x.to - x.from
			q.list, q.until = append(q.list, x), append(q.until, sum)
		}
	}
	return of
}

// upTo returns how long the process was paused up to a moment, and how many pauses had begun by then.
func (p *pauses) upTo(t time.Duration) (sum time.Duration, begun int) {
	n, _ := slices.BinarySearchFunc(p.list, t, func(x stoppage, t time.Duration) int { return cmp.Compare(x.from, t) })
	if n == 0 {
		return 0, 0
	}
	return p.until[n-1] - max(p.list[n-1].to-t, 0), n
}

// between returns how long the process was paused between two moments.
func (p *pauses) between(from, to time.Duration) time.Duration {
	if to <= from {
		return 0
	}
	before, _ := p.upTo(from)
	all, _ := p.upTo(to)
	return all - before
}

// last is the last pause that had begun by a moment.
func (p *pauses) last(t time.Duration) *window {
	if _, n := p.upTo(t); n > 0 {
		return p.list[n-1].window
	}
	return nil
}

// stillFor returns how long a process was paused between two moments. It includes the pauses that faults caused.
func (c *Case) stillFor(process int16, from, to time.Duration) time.Duration {
	return c.pauses[process].between(from, to)
}

// late excuses a process that acted at the moment `at`, after its deadline. The process had the duty to act from the
// moment `since`. It is excused if it was paused without a fault for at least the time `least`, in pauses that began
// before the deadline. The result is the last of these pauses; nil = no excuse.
func (c *Case) late(process int16, since, deadline, at, least time.Duration) *window {
	return c.unasked[process].late(since, deadline, at, least)
}

// overran excuses a holder that stored after its deadline. A holder that heeds its deadline stores late only if it was
// paused between its look at the clock and its store. A planned pause is an excuse, too: no lock could prevent that. If
// pauses are not recorded, there was one.
func (c *Case) overran(process int16, since, deadline, at, least time.Duration) *window {
	if w := c.late(process, since, deadline, at, least); w != nil || !c.Heeds {
		return w
	}
	w := c.pauses[process].late(since, deadline, at, least)
	switch {
	case w == nil && c.Bounds.Gap == 0:
		return &window{name: "a pause, because the holder heeds its deadline", period: period{deadline, at}}
	case w == nil:
		return nil
	}
	excuse := *w
	excuse.fault = false
	return &excuse
}

// late does the work of Case.late for one list of pauses.
func (p *pauses) late(since, deadline, at, least time.Duration) *window {
	before, n := p.upTo(deadline)
	if n == 0 {
		return nil
	}
	earlier, _ := p.upTo(since)
	sum := before - earlier + max(0, min(p.list[n-1].to, at)-max(deadline, since))
	if sum <= 0 || sum < least {
		return nil
	}
	return p.last(deadline)
}

// enough is the shortest pause that excuses a missed renewal. The pause must lie between the answer to the last
// renewal and the end of the lease. It is a third of the lease, or less if little of the lease was left.
func enough(h *hold, since, over time.Duration) time.Duration {
	return min(Margin(h.TTL), over-since-Margin(h.TTL))
}

// unrenewable returns a fault or event (window) that excuses a missed renewal; nil if none exists. There are three
// excuses, all before the lease ended: the process was paused for long enough, servers did not answer for that long,
// or servers forgot the hold. Planned faults are preferred.
func (c *Case) unrenewable(h *hold, proof *history.Op, over time.Duration) *window {
	since, least := proof.Return, enough(h, proof.Return, over)
	if w := c.stopped(h.Process, since, over, least); w != nil {
		return w
	}
	if w := c.forgot(h, over); w != nil {
		return w
	}
	served := func(e *history.Effect) bool { return e != stoodFor && e.Blocks || !e.Known() }
	for _, w := range c.servers {
		to := w.to
		if w.effect.StopsService() && proof.Call <= to { // a later renewal would show that servers answer again
			to = plus(to, c.recovery())
		}
		if silent := min(to, over) - max(w.from, since); served(w.effect) && silent > 0 && silent >= least {
			return w
		}
	}
	if p := &c.unasked[h.Process]; p.between(since, over) > 0 && c.stillFor(h.Process, since, over) >= least {
		return p.last(over)
	}
	return nil
}

// lastProof returns the index of the last extension of a hold that had succeeded by a moment; -1 if none exists.
func lastProof(c *Case, h *hold, by time.Duration) int32 {
	last := int32(-1)
	for _, n := range c.extends(h) {
		if op := &c.Ops[n]; op.Outcome == history.OK && op.Return <= by {
			last = n
		}
	}
	return last
}

// announced reports whether an answer that the hold is lost says nothing about the servers, which may still have the
// hold. There are two cases. First, the lock had announced the loss before, because it could not renew the lease, and
// the answer only repeats that. Second, a lock that renews announces the loss by the answer itself, because it could
// not ask the servers.
func (c *Case) announced(h *hold, op *history.Op) bool {
	if op.Outcome != history.Failed || op.Reason != history.Lost {
		return false
	}
	at, before := h.Lost, op.Call >= h.Lost
	if !before {
		at = op.Return
	}
	if !before && !c.Claims.Renews {
		return false
	}
	proof := c.proof(h, at)
	if at < plus(proof.Return, 2*Margin(h.TTL)) {
		return false // the last third is a watchdog's reserve: if it gave up earlier, it tried too little
	}
	w := c.unrenewable(h, proof, at)
	return w != nil && (before || w.to >= op.Call)
}

// unseen reports whether a hold may have been renewed at any time. If the lock runs in a program of its own, all
// renewals of a hold are recorded as a single extension without an answer.
func (c *Case) unseen(h *hold) bool {
	return c.Measured != nil && c.Measured.Driver != nil && slices.ContainsFunc(c.extends(h), func(i int32) bool {
		return c.Ops[i].Hold == 0 && c.Ops[i].Outcome == history.Unknown
	})
}

// stopped returns the fault that paused a process between two moments for at least the time `least`. If pauses were not
// recorded, the fault may have paused any process.
func (c *Case) stopped(process int16, from, to, least time.Duration) *window {
	w := c.atWork(from, to, func(e *history.Effect) bool { return e.Hit(history.Clients) })
	if w == nil {
		return nil
	}
	asked := c.pauses[process].between(from, to) - c.unasked[process].between(from, to)
	if c.Bounds.Gap == 0 {
		asked = min(w.to, to) - max(w.from, from)
	}
	if asked <= 0 || asked < least {
		return nil
	}
	return w
}

// proof is the call from which the lease of a hold counts at a moment: its Acquire, or its last successful extension.
func (c *Case) proof(h *hold, by time.Duration) *history.Op {
	if n := lastProof(c, h, by); n >= 0 {
		return &c.Ops[n]
	}
	return c.acquire(h)
}
