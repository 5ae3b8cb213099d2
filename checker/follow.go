package checker

import (
	"sort"

	"hammerlock/history"
)

// follow gives every operation to its hold. A watchdog's extensions know only the token.
func (c *Case) follow() {
	var tokens map[uint64]int32
	crashes := map[int32][]int32{}
	for i := range c.Ops {
		op := &c.Ops[i]
		switch op.Kind {
		case history.Crash:
			crashes[op.Worker] = append(crashes[op.Worker], int32(i))
			continue
		case history.Extend:
			if op.Hold == 0 && tokens == nil {
				tokens = c.tokens()
			}
		}
		at := c.index.hold(op.Hold)
		if at < 0 && op.Kind == history.Extend && op.Hold == 0 {
			if n, ok := tokens[op.Token]; ok {
				at = n
			}
		}
		if at >= 0 {
			c.give(&c.Holds[at], int32(i))
		}
	}
	for i := range c.Holds {
		h := &c.Holds[i]
		byCall(c.Ops, h.Extends)
		byCall(c.Ops, h.Reenters)
		c.settle(h, crashes[h.Worker])
	}
}

func (c *Case) tokens() map[uint64]int32 {
	m := make(map[uint64]int32, len(c.Holds))
	for i := range c.Holds {
		if t := c.Holds[i].Token; t != 0 {
			m[t] = int32(i)
		}
	}
	return m
}

func (c *Case) give(h *Hold, i int32) {
	op := &c.Ops[i]
	switch op.Kind {
	case history.Acquire:
		if op.ID != h.ID {
			h.Reenters = append(h.Reenters, i)
		}
	case history.Extend:
		h.Extends = append(h.Extends, i)
	case history.Release:
		if op.Value > 0 && op.Outcome == history.OK {
			h.Reenters = append(h.Reenters, i) // the owner still has it
		} else if h.Release < 0 || op.Call < c.Ops[h.Release].Call {
			h.Release = i
		}
	case history.Load:
		h.Uses[0] = i
	case history.Store:
		h.Uses[1] = i
	case history.Lose:
		h.Lost = min(h.Lost, op.Return)
	}
}

// settle finds the holder's last belief and its death.
func (c *Case) settle(h *Hold, crashes []int32) {
	for _, i := range h.Extends {
		op := &c.Ops[i]
		if op.Outcome == history.OK {
			h.Until = op.Until
		} else if op.Outcome == history.Failed && op.Reason == history.Lost {
			h.Lost = min(h.Lost, op.Return)
		}
	}
	for _, i := range crashes {
		if at := c.Ops[i].Call; at >= h.Call {
			h.Crashed = min(h.Crashed, at)
		}
	}
}

func byCall(ops []history.Op, list []int32) {
	if len(list) > 1 {
		sort.Slice(list, func(i, j int) bool { return ops[list[i]].Call < ops[list[j]].Call })
	}
}
