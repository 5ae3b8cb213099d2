package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"hammerlock/history"
)

// Prepare makes a Case from a history, which must be valid: see history.Validate.
func Prepare(h *history.History) (*Case, error) {
	if len(h.Ops) >= math.MaxInt32 {
		return nil, fmt.Errorf("%d operations are more than a case can hold", len(h.Ops))
	}
	c := &Case{History: h, begin: history.Forever, space: h.Space.Beside(), scratch: h.Space.Beside()}
	defer c.scratch.Free()
	if err := c.number(); err != nil {
		c.space.Free()
		return nil, err
	}
	c.rules = rulesOf(h)
	if c.apart = c.agree(); c.apart != nil {
		c.keepApart()
	}
	c.grants()
	c.follow()
	c.upgrade()
	c.sentAgain = map[int32][]int32{}
	for _, i := range c.repeats {
		at := c.holdAt(c.Ops[i].Hold)
		c.sentAgain[at] = append(c.sentAgain[at], i)
	}
	c.cutOff()
	c.ttl = c.asked()
	c.lease = c.longest(c.ttl)
	c.findWindows()
	c.disturb()
	c.contend()
	return c, nil
}

// Numbers of workers and keys below these limits are always accepted. Greater numbers are accepted only if the history
// is large, because arrays are indexed by them.
const mostWorkers, mostKeys = 1 << 16, 1 << 20

// number builds the index of the operations. It returns an error if an ID occurs twice, or a number is out of range.
func (c *Case) number() error {
	var lanes history.Spans
	room, more := uint64(8*len(c.Ops))+4096, 64*len(c.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		if most := mostWorkers + more; int(op.Worker) >= most {
			return fmt.Errorf("operation %d has worker %d: number workers from 0, "+
				"in a history of %d operations below %d", i, op.Worker, len(c.Ops), most)
		}
		if most := mostKeys + more; int(op.Key) >= most {
			return fmt.Errorf("operation %d has key %d: number keys from 0, in a history of %d operations below %d", i,
				op.Key, len(c.Ops), most)
		}
		if (op.Kind == history.Fault || op.Kind == history.Heal) && uint64(op.Value) >= uint64(len(c.Faults)) {
			return fmt.Errorf("operation %d is fault %d of %d", i, op.Value, len(c.Faults))
		}
		if op.Process < 0 {
			return fmt.Errorf("operation %d has the impossible process %d", i, op.Process)
		}
		c.survey(op)
		id := op.ID
		lane, n := id.Lane(), id.Number()
		if lane < 0 || n == 0 || uint64(lane) > room {
			return fmt.Errorf("operation %d has the impossible id %s", i, id)
		}
		lanes.Add(id)
	}
	for lane, l := range lanes {
		if l.Last-l.First >= room {
			return fmt.Errorf("lane %d has operations from %d to %d, too many for a history of %d", lane, l.First,
				l.Last, len(c.Ops))
		}
		room -= l.Last - l.First
	}
	c.index, c.granted = lanes.Index(&c.space), history.Make[grant](&c.scratch, c.opened)[:0]
	for i := range c.Ops {
		id := c.Ops[i].ID
		place := c.index.Place(id)
		if *place != 0 {
			return fmt.Errorf("operations %d and %d have the same id %s", *place-1, i, id)
		}
		*place = int32(i) + 1
		if op := &c.Ops[i]; opens(op) {
			c.granted = append(c.granted, grant{op.Call, int32(i), op.Key})
		}
	}
	return nil
}

// survey takes from an operation what concerns the whole history, such as the largest worker number or the
// first request.
func (c *Case) survey(op *history.Op) {
	switch op.Kind {
	case history.Acquire:
		c.begin = min(c.begin, op.Call)
		if opens(op) {
			c.opened++
		}
	case history.Load, history.Store, history.Final:
		c.viewed = true
	case history.End:
		c.visits = true
	}
	c.workers, c.keys = max(c.workers, int(op.Worker)+1), max(c.keys, int(op.Key)+1)
	c.processes = max(c.processes, int(op.Process)+1)
	for len(c.working) < c.processes {
		c.working = append(c.working, false)
	}
	c.working[op.Process] = c.working[op.Process] || op.Worker >= 0
}

// grants makes a hold of every Acquire that was granted, or may have been.
func (c *Case) grants() {
	slices.SortFunc(c.granted, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.index, b.index))
	})
	c.group()
	c.holds = history.Make[hold](&c.space, len(c.granted))
	for k, g := range c.granted {
		op, i := &c.Ops[g.index], c.byCall[k]
		c.holds[i] = hold{
			acquire: g.index, Worker: op.Worker, Key: op.Key, Process: op.Process,
			Permits: op.Permits, Outcome: op.Outcome, Call: op.Call, Return: op.Return, TTL: op.TTL, Until: op.Until,
			Release: -1, Uses: [2]int32{-1, -1}, load: -1, Lost: history.Forever, Crashed: history.Forever,
			releaseCall: history.Forever, releaseReturn: history.Forever, stored: history.Forever,
		}
		if op.Until == 0 {
			c.holds[i].Until = history.Forever // the lease does not end
		}
		if op.Seen != 0 {
			c.upgrades = append(c.upgrades, g.index)
		}
		*c.index.Place(op.ID) = -i - 1
	}
	c.granted = nil
}

// opens tells whether an operation is an Acquire that makes a hold: it was not refused, and is no re-entry.
func opens(op *history.Op) bool {
	return op.Kind == history.Acquire && op.Outcome != history.Failed && op.Outermost()
}

// group lists the holds by key, in c.byKey, and by call, in c.byCall. The holds of a key are neighbours in memory, so
// a checker that goes from key to key reads memory in order.
func (c *Case) group() {
	c.place = make([]int32, c.keys+1)
	var sizes []int32
	for _, g := range c.granted {
		at := &c.place[g.key+1]
		if *at == 0 {
			sizes = append(sizes, 0)
			*at = int32(len(sizes))
		}
		sizes[*at-1]++
	}
	c.byKey, c.byCall = room[int32](&c.space, sizes), history.Make[int32](&c.space, len(c.granted))
	next := int32(0)
	for k, n := range sizes {
		for range n {
			c.byKey[k] = append(c.byKey[k], next)
			next++
		}
		sizes[k] = next - n // index of the key's next hold
	}
	for i, g := range c.granted {
		at := &sizes[c.place[g.key+1]-1]
		c.byCall[i] = *at
		*at++
	}
}
