package checker

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/model"
)

// Case is a history prepared for the checkers, with its holds and indices of its operations.
type Case struct {
	*history.History
	holds     []hold            // all holds; those of a key are adjacent, sorted by the calls of their Acquires
	byCall    []int32           // indices of all holds, sorted by call
	links     []int32           // indices of extensions and re-entries in Ops; those of a hold are adjacent
	index     history.Index     // ID -> a number n: if n > 0, the operation Ops[n-1]; if n < 0, the hold holds[-n-1]
	byKey     [][]int32         // for each key, its holds, sorted by call; keys are in the order of their first holds
	place     []int32           // key+1 -> index in byKey, plus one; 0 = the key has no holds
	repeats   []int32           // indices in Ops of later releases of a hold
	sentAgain map[int32][]int32 // hold -> its later releases
	unheld    []int32           // indices in Ops of successful releases by workers that held nothing
	upgrades  []int32           // indices in Ops of Acquires that upgraded a shared hold to an exclusive one
	// indices in Ops of faults, heals, pauses, failures, seen keys; and of successful calls without a hold
	events []int32

	windows   []window            // faults and unplanned events
	servers   []*window           // those windows that are not pauses of processes
	planned   reaching            // faults that can make servers forget
	emptied   reaching            // faults that can make servers forget data, not only time
	roles     []*window           // role changes that belong to a fault
	forgetful []*window           // windows without a fault in which servers may have forgotten something
	whole     reaching            // the windows of forgetful, for searching
	ofKey     map[int32]*reaching // key -> the windows of forgetful that concern the key; computed when needed
	counter   reaching            // windows without a fault in which the counter's server may have forgotten something
	sights    map[int32][]*history.Op
	// key -> token -> when the key was seen with the token; only for tokens of a single hold
	sightsBy map[int32]map[uint64][]*history.Op
	refusals [][]int32 // key+1 -> see refusalsOf; nil = not computed yet
	// unheardOf has the calls that did not reach a server, or had no answer; nil = not computed yet.
	unheardOf []period
	prompt    time.Duration // see promptness; 0 = not computed yet
	pauses    []pauses      // by process
	unasked   []pauses      // by process: pauses that no fault has caused
	disturbed spans         // times in which no prompt grant can be expected
	displaced spans         // times in which a waiter may have lost its place in the queue
	hitches   spans         // short pauses of any process
	// a grant that no worker gets may delay others, because the lock has several sites, a queue or messages
	lingers bool

	rules  model.Rules   // what servers promise
	ttl    time.Duration // longest lease that was requested, or that the lock has by default
	lease  time.Duration // longest time for which servers may keep such a lease
	begin  time.Duration // the first request for the lock
	visits bool          // the history shows when visits end
	viewed bool          // the history has operations on the counter

	several map[history.ID]bool // Acquires that are part of a call for several pages; nil = not computed yet

	workers, keys, processes int     // largest number of each, plus one
	working                  []bool  // by process: it has workers
	opened                   int     // number of Acquires that make a hold
	granted                  []grant // these Acquires, until their holds exist
	waited                   []int32 // by key: number of waits; nil = not computed yet

	// largest difference between machines' clocks, as measured by messages alone; 0 = loads have not narrowed it
	exchanged time.Duration
	apart     error // why time stamps of two machines cannot be compared; nil = they can

	once     sync.Once
	findings findings           // result of the exclusion checker, which other checkers use, too
	stories  map[int32]*account // key -> result of the model; nil = not computed yet, or not supported

	space   history.Space // memory that lives until Free
	scratch history.Space // memory that lives until Prepare or the current checker ends
}

// Free frees the memory that a case of a long history has outside of the heap. Verdicts remain valid.
func (c *Case) Free() {
	c.space.Free()
	c.scratch.Free()
}

// hold is an Acquire that was granted, or may have been, with all operations that belong to it. There are millions of
// holds, so a hold fills two cache lines, has no pointers, and copies only the often compared fields of its operations.
type hold struct {
	acquire int32 // index in Ops
	Release int32 // index in Ops of its first release; -1 = none
	// indices in Ops, -1 = none: the last store and the load before it; for a shared hold, its first and last load
	Uses     [2]int32
	extends  part // its extensions, sorted by call
	reenters part // inner Acquires and releases of a reentrant lock, sorted by call

	Worker    int32
	Key       int32
	Process   int16
	Permits   uint16          // 0 = exclusive
	Outcome   history.Outcome // outcome of the Acquire: OK or Unknown; if it Failed there is no hold
	Contended bool            // another worker tried to get the lock during it
	// another worker tried during this hold, when a grant would certainly have been a double grant
	Exposed  bool
	ending   ending          // what is known about its release
	cut      bool            // the history ends before the hold does
	doubtful bool            // its release may be an inner one, which leaves the lock held
	anew     bool            // a re-entry may have been a new grant, after the lease was over
	upgraded bool            // it was upgraded to an exclusive hold, whose Acquire counts as its release
	answer   history.Outcome // outcome of its first release
	load     int32           // index in Ops of its last load so far; -1 = none

	Call    time.Duration // of the acquire
	Return  time.Duration // of the acquire
	TTL     time.Duration // 0 = the lease does not end
	Until   time.Duration // deadline of its holder, by the last answer
	Lost    time.Duration // when the holder was told that it is lost; Forever = never
	Crashed time.Duration // when its worker was killed; Forever = never

	releaseCall, releaseReturn, stored time.Duration // copies from Ops; Forever = there is none
}

// part is a range of Case.links, with the entries of one hold.
type part struct{ from, to int32 }

func (c *Case) acquire(h *hold) *history.Op { return &c.Ops[h.acquire] }

// extends lists a hold's extensions as indices in Ops, sorted by call.
func (c *Case) extends(h *hold) []int32 { return c.links[h.extends.from:h.extends.to:h.extends.to] }

// reenters lists a hold's inner Acquires and releases as indices in Ops, sorted by call.
func (c *Case) reenters(h *hold) []int32 { return c.links[h.reenters.from:h.reenters.to:h.reenters.to] }

// op returns the operation with the given ID; nil if none exists.
func (c *Case) op(id history.ID) *history.Op {
	if i := c.at(id); i >= 0 {
		return &c.Ops[i]
	}
	return nil
}

// hold returns the hold of an Acquire; nil if none exists.
func (c *Case) hold(acquire history.ID) *hold {
	if i := c.holdAt(acquire); i >= 0 {
		return &c.holds[i]
	}
	return nil
}

// at returns the index in Ops of the operation with the given ID; -1 if none exists.
func (c *Case) at(id history.ID) int32 {
	i := c.index.Find(id)
	if i < 0 {
		return c.holds[-i-1].acquire
	}
	return i - 1
}

// holdAt returns the index in c.holds of the hold of an Acquire; -1 if none exists.
func (c *Case) holdAt(acquire history.ID) int32 {
	if i := c.index.Find(acquire); i < 0 {
		return -i - 1
	}
	return -1
}

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

// grant has the fields of an Acquire by which holds are sorted.
type grant struct {
	call       time.Duration
	index, key int32
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

// stamp is a time, with the index of its operation. Sorting moves 16 bytes for a stamp, but 128 for an operation.
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

// room makes empty lists with the given capacities in a single array.
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

func clone[T any](space *history.Space, list []T) []T {
	copied := history.Make[T](space, len(list))
	copy(copied, list)
	return copied
}

// holdsOf returns the indices of a key's holds, sorted by call.
func (c *Case) holdsOf(key int32) []int32 {
	if at := c.place[key+1]; at > 0 {
		return c.byKey[at-1]
	}
	return nil
}
