package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

// slack is the largest difference between the clocks of two processes.
func (c *Case) slack(a, b int16) time.Duration { return c.Bounds.Between(a, b) }

// anySlack is the largest difference between the clocks of any two workers.
func (c *Case) anySlack() time.Duration {
	if c.processes > 1 {
		return c.Bounds.Slack
	}
	return 0
}

// group is a set of holds that are compared with each other.
type group struct {
	scope scope
	holds []int32
}

// groups returns a group with all holds, then a group for each machine, then a group for each process. In a smaller
// group the clocks agree better, so more can be proved.
func (c *Case) groups(holds []int32) []group {
	if c.Processes < 2 || c.Bounds.Slack == 0 {
		return []group{{asRead, holds}}
	}
	list := []group{{everywhere, holds}}
	split := func(s scope, by func(process int16) int) {
		place := map[int]int{}
		for _, n := range holds {
			of := by(c.holds[n].Process)
			at, ok := place[of]
			if !ok {
				at = len(list)
				place[of], list = at, append(list, group{scope: s})
			}
			list[at].holds = history.Append(&c.scratch, list[at].holds, n)
		}
	}
	if doubts := c.Bounds.Doubts; len(doubts) > 0 {
		split(onMachine, func(process int16) int { return doubts[process].Machine })
	}
	split(asRead, func(process int16) int { return int(process) })
	return list
}

// sight is a bound that follows from a load which saw a store of another machine. The load returned after the store was
// called. So at the time `at`, the reader's clock is ahead of the writer's clock by at most the duration `most`.
type sight struct{ at, most time.Duration }

// sights are the bounds for two machines, sorted by time. A bound also holds at other times if the drift of the clocks
// is added to it. A bound is left out if another one, with the drift added, is as narrow at its time.
type sights []sight

func (e sights) add(s sight, drift float64) sights {
	if n := len(e); n > 0 && s.most >= e[n-1].later(s.at, drift) {
		return e
	}
	for n := len(e); n > 0 && e[n-1].most >= s.later(e[n-1].at, drift); n-- {
		e = e[:n-1]
	}
	return append(e, s)
}

// later returns the bound at another time, with the drift added.
func (s sight) later(t time.Duration, drift float64) time.Duration {
	return s.most + time.Duration(drift*float64(max(t-s.at, s.at-t)))
}

// at returns the narrowest bound at time t; Forever if none exists.
func (e sights) at(t time.Duration, drift float64) time.Duration {
	n, _ := slices.BinarySearchFunc(e, t, func(s sight, t time.Duration) int { return cmp.Compare(s.at, t) })
	least := history.Forever
	for _, s := range e[max(n-1, 0):min(n+1, len(e))] {
		least = min(least, s.later(t, drift))
	}
	return least
}

// worst returns the widest bound among all times up to the end; Forever if there is no bound.
func (e sights) worst(end time.Duration, drift float64) time.Duration {
	if len(e) == 0 {
		return history.Forever
	}
	worst := max(e[0].later(0, drift), e[len(e)-1].later(end, drift))
	for i, s := range e[1:] { // between two sights the bound is widest where both give the same value
		worst = max(worst, (e[i].later(s.at, drift)+s.most)/2)
	}
	return worst
}

// agree narrows the bounds of the machines' clocks, which come from message exchanges, by loads and stores of the
// counter. It returns an error if loads and stores contradict each other. It does nothing if a clock was set and its
// drift is unknown: then a bound does not hold at other times.
func (c *Case) agree() error {
	if slices.ContainsFunc(c.Bounds.Doubts, func(d history.Doubt) bool { return d.Offset == history.MaxDoubt }) {
		return nil
	}
	drift := 2.02 * c.Bounds.Rate // for two clocks, with rounding
	seen := c.sightings(drift / 2)
	if len(seen) == 0 {
		return nil
	}
	for pair, e := range seen {
		back := seen[[2]int{pair[1], pair[0]}]
		for _, s := range e {
			if len(back) > 0 && s.most+back.at(s.at, drift) < 0 {
				return fmt.Errorf("the clocks of two machines contradict what loads have seen, near %s: "+
					"one was stepped, or drifts more than is assumed", clock(s.at))
			}
		}
	}
	var offsets []time.Duration // by machine
	doubts := slices.Clone(c.Bounds.Doubts)
	for _, d := range doubts[1:] {
		offsets = append(offsets, make([]time.Duration, max(d.Machine+1-len(offsets), 0))...)
		offsets[d.Machine] = max(offsets[d.Machine], d.Offset, 1)
	}
	share, end := 0.0, c.end()
	for a := range offsets {
		for b := range a {
			if offsets[a] > 0 && offsets[b] > 0 {
				widest := max(seen[[2]int{a, b}].worst(end, drift), seen[[2]int{b, a}].worst(end, drift))
				share = max(share, float64(widest)/float64(offsets[a]+offsets[b]))
			}
		}
	}
	if share >= 1 {
		return nil
	}
	lost := time.Duration(0) // the bound of the suite's own clock grows by the most that another one shrank
	for p := range doubts[1:] {
		d := &doubts[p+1]
		narrow := time.Duration(share*float64(offsets[d.Machine])) + 1
		if narrow < d.Offset {
			lost, d.Offset = max(lost, d.Offset-narrow), narrow
		}
	}
	doubts[0].Offset += lost
	h := *c.History
	c.exchanged = history.Agree(c.Bounds.Doubts[1:]).Slack
	h.Bounds.Agreement = history.Agree(doubts)
	c.History = &h
	return nil
}

// keepApart forbids comparisons between machines whose clocks contradict each other. Within a machine everything is
// judged as usual.
func (c *Case) keepApart() {
	doubts := slices.Clone(c.Bounds.Doubts)
	for p := range doubts {
		doubts[p].Offset = history.MaxDoubt
	}
	h := *c.History
	h.Bounds.Agreement = history.Agree(doubts)
	c.History = &h
}

// sightings returns the bounds for each pair of machines. The first machine of a pair loaded what the second one
// had stored.
func (c *Case) sightings(drift float64) map[[2]int]sights {
	doubts, seen := c.Bounds.Doubts, map[[2]int]sights{}
	if len(doubts) < 3 { // the first one is the suite itself
		return nil
	}
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind != history.Load || op.Outcome != history.OK || op.Seen == 0 {
			continue
		}
		store := c.op(op.Seen)
		if store == nil || store.Kind != history.Store || store.Call == 0 {
			continue // the store was called before the clock started; its time was recorded as 0
		}
		reader, writer := &doubts[op.Process], &doubts[store.Process]
		if reader.Machine == writer.Machine {
			continue
		}
		s := sight{op.Return, op.Return - store.Call + reader.Own + writer.Own + 4}
		s.most += time.Duration(drift * float64(max(s.most, -s.most)))
		pair := [2]int{reader.Machine, writer.Machine}
		seen[pair] = seen[pair].add(s, 2*drift)
	}
	return seen
}

// differ is the largest difference between the clocks of two processes with workers.
func (c *Case) differ() time.Duration {
	if len(c.Bounds.Doubts) > 1 {
		return history.Agree(c.Bounds.Doubts[1:]).Slack
	}
	return c.Bounds.Slack
}
