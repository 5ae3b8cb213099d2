package checker

import (
	"cmp"
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
	silences  []spans       // by process: see quiet; nil = not computed yet
	unasked   []pauses      // by process: pauses that no fault has caused
	disturbed spans         // times in which no prompt grant can be expected
	logs      map[int16]log // by process, of a partial history
	eventful  spans         // disturbed, without times that only belong to what killed workers had not sent
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

const (
	endless  ending = iota // there was no release: it ends by expiry, or never
	returned               // its release took effect between call and return, so it was held until the call
	maybe                  // its release may have taken effect at any time after the call
	gone                   // the answer to its release was that it had been lost
)

// ending says how a hold ended on the servers.
type ending uint8

// pauses are the times in which a process was paused, sorted and disjoint.
type pauses struct {
	list  []stoppage
	until []time.Duration // until[i] is the sum of the lengths of list[0] to list[i]
}

type stoppage struct {
	period
	window *window // the first recorded gap of this pause
}

// grant has the fields of an Acquire by which holds are sorted.
type grant struct {
	call       time.Duration
	index, key int32
}

// end is the last time in the workers' records.
func (c *Case) end() time.Duration {
	var last time.Duration
	for i := len(c.Ops) - 1; i >= 0; i-- {
		if c.Ops[i].Worker < 0 {
			continue
		}
		last = max(last, c.Ops[i].Call)
		if c.Ops[i].Return != history.Forever {
			return max(last, c.Ops[i].Return)
		}
	}
	return last
}

// link assigns an operation to a hold.
type link struct{ hold, op int32 }

// keep stores a hold's operations in Case.links.
func (c *Case) keep(list []int32) part {
	from := int32(len(c.links))
	c.links = append(history.Reserve(&c.space, c.links, len(list)), list...)
	return part{from, int32(len(c.links))}
}

// byCalls compares two operations, given by their indices in Ops, by their calls.
func (c *Case) byCalls(a, b int32) int {
	return cmp.Or(cmp.Compare(c.Ops[a].Call, c.Ops[b].Call), cmp.Compare(a, b))
}

// releases sets an operation as the first release of a hold.
func (h *hold) releases(i int32, op *history.Op) {
	h.Release, h.releaseCall, h.releaseReturn, h.ending, h.answer = i, op.Call, op.Return, maybe, op.Outcome
	if op.Outcome == history.Failed && op.Reason == history.Lost {
		h.ending = gone
	}
}

// Checker judges one property.
type Checker struct {
	Name string
	Doc  string
	// Causes lists the causes with which its verdicts fail, the worst first.
	Causes []string
	// Applies tells whether the lock claims the property; nil = always. A property that is not claimed is not judged.
	Applies func(*history.Header) bool
	Check   func(*Case) Verdict
}

// log is what a partial history has of the workers of one process.
type log struct {
	last time.Duration // last return
	died time.Duration // by this time all its workers were dead; Forever = not all of them were killed
	idle bool          // each worker was dead or had an open call, so none can have called anything later
}
