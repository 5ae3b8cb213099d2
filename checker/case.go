package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
)

// Case is a history prepared for the checkers: its holds, and an index of its operations.
type Case struct {
	*history.History
	holds     []hold            // those of a key together, by the call of their acquires
	byCall    []int32           // into holds: all of them, by call
	links     []int32           // into Ops: extensions and re-entries, those of a hold together
	index     history.Index     // from 1 on into Ops; from -1 down into holds, which know their operations
	byKey     [][]int32         // into holds: those of a key, by call; the first key granted is the first
	place     []int32           // by key, from -1 on: its place in byKey, plus one; 0 without holds
	repeats   []int32           // into Ops: second releases of a hold
	sentAgain map[int32][]int32 // the same, by hold
	upgrades  []int32           // into Ops: acquires that took the place of a shared hold
	events    []int32           // into Ops: faults, heals, found keys; releases and extensions without a hold

	windows   []window            // what was at work that no lock answers for
	servers   []*window           // those of them that are no pauses
	planned   reaching            // faults that can make servers forget
	emptied   reaching            // those of them that lose more than time
	roles     []*window           // changes of roles that belong to one
	forgetful []*window           // servers that may have forgotten something by themselves
	whole     reaching            // the same
	ofKey     map[int32]*reaching // the same, of a key; made when it is asked for
	counter   reaching            // when the counter's server may have forgotten something unasked
	sights    map[int32][]*history.Op
	sightsBy  map[int32]map[uint64][]*history.Op // by key and token, of tokens that one hold has
	refusals  [][]int32                          // by key, from -1 on: see refusalsOf; nil = not looked for yet
	// calls that did not reach a server, or had no answer; nil = not looked for yet
	unheardOf []period
	pauses    []pauses // by process
	unasked   []pauses // those that no fault asked for
	disturbed spans    // when the lock cannot be expected to be granted at once
	displaced spans    // when a waiter's place may have been lost
	hitches   spans    // when a process was paused for a moment
	lingers   bool     // it has sites, a queue or messages: what is granted to nobody may delay others

	ttl    time.Duration // the longest lease that was asked for, or that a lock with a lease of its own named
	lease  time.Duration // the longest life that a server may give to it
	begin  time.Duration // when the lock was asked for first
	visits bool          // the history tells when visits end
	viewed bool          // the counter was used

	several map[history.ID]bool // acquires that are part of one for several pages; nil = not looked for yet

	workers, keys, processes int     // one more than the greatest number of each
	working                  []bool  // by process: it has workers
	opened                   int     // how many acquires make a hold
	granted                  []grant // these acquires, until they are holds
	waited                   []int32 // by key: how many waits there are; nil = not counted yet

	exchanged time.Duration // what exchanges alone bound the clocks of two machines to; 0 = the bounds are those
	apart     error         // why the stamps of two machines cannot be compared; nil = they can

	once     sync.Once
	findings findings           // of the exclusion checker, which others need too
	stories  map[int32]*account // by key; nil = not looked for yet, or the model has no word for the page

	space   history.Space // of what is as long as the history, until the case is freed
	scratch history.Space // the same, until the checker at work, or Prepare, is done
}

// Free gives the memory back that a case of a long history has beside the heap. Its verdicts stay.
func (c *Case) Free() {
	c.space.Free()
	c.scratch.Free()
}

// hold is an acquire that was granted or may have been, with all operations that belong to it. There are millions of
// them: it is two cache lines without a pointer, and has copies only of what is compared again and again.
type hold struct {
	acquire int32 // into Ops
	Release int32 // into Ops: its first release, -1 without one
	// into Ops: its last store and the load before, or its first and last load if it is not exclusive; -1 without one
	Uses     [2]int32
	extends  part // its extensions, by call
	reenters part // inner acquires and releases, by call

	Worker    int32
	Key       int32
	Process   int16
	Permits   uint16          // 0 = exclusive
	Outcome   history.Outcome // of the acquire: OK or Unknown; one that Failed is no hold
	Contended bool            // another worker tried for the lock during it
	Exposed   bool            // ... and would have been seen to share it, whatever the clocks of their processes are
	ending    ending          // what is known of its release
	cut       bool            // the history ends before it does
	doubtful  bool            // its release may be an inner one
	upgraded  bool            // an exclusive hold has taken its place: what counts as its release is that one's acquire
	answer    history.Outcome // of its first release
	load      int32           // into Ops: its last load so far; -1 without one

	Call    time.Duration // of the acquire
	Return  time.Duration // of the acquire
	TTL     time.Duration // 0 = without expiry
	Until   time.Duration // its holder may believe in it before then, by the last answer
	Lost    time.Duration // when the holder was told that it is lost; Forever if it was not
	Crashed time.Duration // when its worker was killed; Forever if it was not

	releaseCall, releaseReturn, stored time.Duration // copies from Ops; Forever if there are none
}

// part is a hold's part of a case's links.
type part struct{ from, to int32 }

// acquire is the operation that a hold began with.
func (c *Case) acquire(h *hold) *history.Op { return &c.Ops[h.acquire] }

// extends are a hold's extensions, into Ops, by call.
func (c *Case) extends(h *hold) []int32 { return c.links[h.extends.from:h.extends.to:h.extends.to] }

// reenters are a hold's inner acquires and releases, into Ops, by call.
func (c *Case) reenters(h *hold) []int32 { return c.links[h.reenters.from:h.reenters.to:h.reenters.to] }

// op returns the operation with that ID, nil without one.
func (c *Case) op(id history.ID) *history.Op {
	if i := c.at(id); i >= 0 {
		return &c.Ops[i]
	}
	return nil
}

// hold returns the hold of an acquire, nil without one.
func (c *Case) hold(acquire history.ID) *hold {
	if i := c.holdAt(acquire); i >= 0 {
		return &c.holds[i]
	}
	return nil
}

// at is the place of the operation with that ID, -1 without one.
func (c *Case) at(id history.ID) int32 {
	i := c.index.Find(id)
	if i < 0 {
		return c.holds[-i-1].acquire
	}
	return i - 1
}

// holdAt is the place of the hold of an acquire, -1 without one.
func (c *Case) holdAt(acquire history.ID) int32 {
	if i := c.index.Find(acquire); i < 0 {
		return -i - 1
	}
	return -1
}

// Prepare reads a history's holds. The history must be valid: see history.Validate.
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

// What a worker or a key may be numbered at least, so that arrays by number stay small. A page costs a few bytes, and
// may never be visited; a worker costs hundreds.
const mostWorkers, mostKeys = 1 << 16, 1 << 20

// number builds the index of the operations. It refuses IDs that would make it huge.
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

// grant is what is compared of an acquire that makes a hold.
type grant struct {
	call       time.Duration
	index, key int32
}

// survey takes in what one operation shows of the whole history.
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

// grants makes a hold of every acquire that was granted or may have been.
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
			c.holds[i].Until = history.Forever // without an end
		}
		if op.Seen != 0 {
			c.upgrades = append(c.upgrades, g.index)
		}
		*c.index.Place(op.ID) = -i - 1
	}
	c.granted = nil
}

// opens tells whether an operation is an acquire that makes a hold: not refused, and no re-entry.
func opens(op *history.Op) bool {
	return op.Kind == history.Acquire && op.Outcome != history.Failed && op.Outermost()
}

// stamp is a time and the index of what happened then. Sorting stamps moves 16 bytes where sorting operations moves
// 128.
type stamp struct {
	at    time.Duration
	index int32
}

func (s stamp) compare(t stamp) int {
	if s.at != t.at {
		return cmp.Compare(s.at, t.at)
	}
	return cmp.Compare(s.index, t.index)
}

// group gives every hold its place: those of a key stand together, so that to look at one key after another reads each
// part of a long case once.
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
		sizes[k] = next - n // from where on its next one stands
	}
	for i, g := range c.granted {
		at := &sizes[c.place[g.key+1]-1]
		c.byCall[i] = *at
		*at++
	}
}

// room makes an empty list with room for each size, all in one array.
func room[T any](space *history.Space, sizes []int32) [][]T {
	sum := 0
	for _, n := range sizes {
		sum += int(n)
	}
	all, lists := history.Make[T](space, sum), make([][]T, len(sizes))
	for k, n := range sizes {
		lists[k], all = all[:0:n], all[n:]
	}
	return lists
}

// clone copies a list.
func clone[T any](space *history.Space, list []T) []T {
	copied := history.Make[T](space, len(list))
	copy(copied, list)
	return copied
}

// holdsOf lists the holds of a key, by call.
func (c *Case) holdsOf(key int32) []int32 {
	if at := c.place[key+1]; at > 0 {
		return c.byKey[at-1]
	}
	return nil
}
