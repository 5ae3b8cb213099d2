package checker

import (
	"cmp"
	"slices"

	"hammerlock/history"
)

// mostCalls is the largest number of calls in a core (a small contradiction).
const mostCalls = 12

// core finds a few calls that contradict each other. It starts with the calls of the holds in the evidence, and
// removes calls as long as the rest is still contradictory. A removed call may have happened at any time, or never.
func (x *certificate) core(evidence []int32) (string, []int32) {
	var holds []int32
	for _, n := range evidence {
		op := &x.Ops[n]
		at := x.holdAt(op.Hold)
		if op.Kind == history.Acquire && op.Outermost() {
			at = x.holdAt(op.ID)
		}
		if at >= 0 && !slices.Contains(holds, at) {
			holds = append(holds, at)
		}
	}
	for wide := range 2 {
		if wide > 0 {
			holds = x.neighbours(holds)
		}
		calls := x.callsOf(holds, evidence)
		if len(holds) == 0 || len(calls) > mostCalls {
			break
		}
		part := x.part(holds)
		if !x.refutes(part, x.ids(calls)) {
			continue
		}
		for i := len(calls) - 1; i >= 0; i-- {
			less := slices.DeleteFunc(slices.Clone(calls), func(n int32) bool {
				return n == calls[i] || x.Ops[calls[i]].Kind == history.Acquire && x.Ops[n].Hold == x.Ops[calls[i]].ID
			})
			if len(less) > 1 && x.refutes(part, x.ids(less)) {
				calls = less
				i = min(i, len(calls))
			}
		}
		return "core", calls
	}
	return "", nil
}

func (x *certificate) ids(calls []int32) (list []string) {
	for _, n := range calls {
		list = append(list, x.Ops[n].ID.String())
	}
	return list
}

// callsOf lists the relevant calls of holds: Acquires, the first and the last two extensions, releases, and evidence.
func (x *certificate) callsOf(holds, evidence []int32) (list []int32) {
	add := func(n int32) {
		if n >= 0 && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, at := range holds {
		h := &x.holds[at]
		add(h.acquire)
		extends := slices.DeleteFunc(slices.Clone(x.extends(h)), func(n int32) bool {
			op := &x.Ops[n]
			return op.Hold == 0 && op.Token == 0 || op.Kind != history.Extend ||
				op.Outcome == history.Failed && op.Reason != history.Lost && op.Reason != history.Busy
		})
		for k, n := range extends {
			if k == 0 || k >= len(extends)-2 || slices.Contains(evidence, n) {
				add(n)
			}
		}
		add(h.Release)
		for _, n := range x.sentAgain[at] {
			add(n)
		}
	}
	for _, n := range evidence {
		op := &x.Ops[n]
		at, call := x.holdAt(op.Hold), op.Kind == history.Extend || op.Kind == history.Release
		if call && at >= 0 && slices.Contains(holds, at) {
			add(n)
		}
	}
	slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(x.Ops[a].Call, x.Ops[b].Call) })
	return list
}

// neighbours adds to each hold the two holds before it and the one after it, if they were granted.
func (x *certificate) neighbours(holds []int32) []int32 {
	list := slices.Clone(holds)
	all := x.holdsOf(x.holds[holds[0]].Key)
	for _, at := range holds {
		n, _ := slices.BinarySearch(all, at)
		for _, k := range all[max(n-2, 0):min(n+2, len(all))] {
			if h := &x.holds[k]; !slices.Contains(list, k) && h.Outcome == history.OK {
				list = append(list, k)
			}
		}
	}
	return list
}

// part makes a small history: the operations of some holds, and the faults and events that may matter.
func (x *certificate) part(holds []int32) *history.History {
	part := &history.History{Header: x.Header, Partial: x.Partial}
	names, tokens, workers := map[history.ID]bool{}, map[uint64]bool{}, map[int32]bool{}
	for _, at := range holds {
		op := x.acquire(&x.holds[at])
		names[op.ID], workers[op.Worker] = true, true
		if op.Token != 0 {
			tokens[op.Token] = true
		}
	}
	for i := range x.Ops {
		op := &x.Ops[i]
		keep := names[op.ID] || names[op.Hold]
		switch op.Kind {
		case history.Acquire:
			keep = keep || names[op.Seen] || tokens[op.Token]
		case history.Extend:
			keep = keep || op.Hold == 0 && tokens[op.Token]
		case history.Crash:
			keep = workers[op.Worker]
		case history.Fault, history.Heal, history.Role, history.Incident:
			keep = true
		}
		if keep {
			part.Ops = append(part.Ops, *op)
		}
	}
	return part
}
