package checker

import (
	"fmt"
	"sort"
	"time"

	"hammerlock/history"
)

// Case is a history that was prepared for the checkers: its holds, and where each operation stands.
type Case struct {
	*history.History
	Holds []Hold // in the order of their acquires' calls
	index index
}

// Hold is one token: everything that was asked for it and answered, and what its holder did with it.
type Hold struct {
	ID      history.ID // of the acquire
	Token   uint64
	Fence   int64
	Worker  int32
	Key     int32
	Process int16

	Outcome  history.Outcome // of the acquire: OK or Unknown; one that Failed is no hold
	Call     time.Duration   // of the acquire
	Return   time.Duration   // of the acquire
	TTL      time.Duration   // 0 = without expiry
	Until    time.Duration   // its holder may believe in it before then, by the last answer that said so
	Extends  []int32         // into Ops: its extensions, by call
	Release  int32           // into Ops: its first release, -1 if there is none
	Uses     [2]int32        // into Ops: its load and its store, -1 if there is none
	Lost     time.Duration   // when the holder was told that it is lost; Forever if it was not
	Crashed  time.Duration   // when its worker died; Forever if it did not
	Reenters []int32         // into Ops: inner acquires and releases, by call
}

// Op returns the operation with that ID, nil if there is none.
func (c *Case) Op(id history.ID) *history.Op {
	if i := c.index.at(id); i >= 0 {
		return &c.Ops[i]
	}
	return nil
}

// Hold returns the hold of an acquire, nil if there is none.
func (c *Case) Hold(acquire history.ID) *Hold {
	if i := c.index.hold(acquire); i >= 0 {
		return &c.Holds[i]
	}
	return nil
}

// index finds operations by ID. IDs are dense in every lane, so it is an array a lane and no map.
type index struct {
	ops   [][]int32 // by lane and number
	holds [][]int32
}

func (x *index) at(id history.ID) int32   { return find(x.ops, id) }
func (x *index) hold(id history.ID) int32 { return find(x.holds, id) }

func find(lanes [][]int32, id history.ID) int32 {
	lane, n := id.Lane(), id.Number()
	if lane < 0 || lane >= len(lanes) || n == 0 || n > uint64(len(lanes[lane])) {
		return -1
	}
	return lanes[lane][n-1] - 1
}

// Prepare reads a history's holds. The history must be valid: see history.Validate.
func Prepare(h *history.History) (*Case, error) {
	c := &Case{History: h}
	if err := c.number(); err != nil {
		return nil, err
	}
	c.grants()
	c.follow()
	return c, nil
}

func (c *Case) number() error {
	for i := range c.Ops {
		id := c.Ops[i].ID
		lane, n := id.Lane(), id.Number()
		if lane < 0 || n == 0 || n > uint64(4*len(c.Ops)+1024) || lane > 4*len(c.Ops)+1024 {
			return fmt.Errorf("operation %d has the impossible id %s", i, id)
		}
		for lane >= len(c.index.ops) {
			c.index.ops = append(c.index.ops, nil)
		}
		for n > uint64(len(c.index.ops[lane])) {
			c.index.ops[lane] = append(c.index.ops[lane], 0)
		}
		if c.index.ops[lane][n-1] != 0 {
			return fmt.Errorf("operations %d and %d have the same id %s", c.index.ops[lane][n-1]-1, i, id)
		}
		c.index.ops[lane][n-1] = int32(i) + 1
	}
	return nil
}

// grants makes a hold of every acquire that was granted or may have been.
func (c *Case) grants() {
	n := 0
	for i := range c.Ops {
		if op := &c.Ops[i]; op.Kind == history.Acquire && op.Outcome != history.Failed && (op.Hold == op.ID || op.Hold == 0) {
			n++
		}
	}
	c.Holds = make([]Hold, 0, n)
	for i := range c.Ops {
		op := &c.Ops[i]
		if op.Kind != history.Acquire || op.Outcome == history.Failed || op.Hold != op.ID && op.Hold != 0 {
			continue
		}
		c.Holds = append(c.Holds, Hold{
			ID: op.ID, Token: op.Token, Fence: op.Fence, Worker: op.Worker, Key: op.Key, Process: op.Process,
			Outcome: op.Outcome, Call: op.Call, Return: op.Return, TTL: op.TTL, Until: op.Until,
			Release: -1, Uses: [2]int32{-1, -1}, Lost: history.Forever, Crashed: history.Forever,
		})
	}
	sort.Slice(c.Holds, func(i, j int) bool { return c.Holds[i].Call < c.Holds[j].Call })
	c.index.holds = make([][]int32, len(c.index.ops))
	for lane := range c.index.ops {
		c.index.holds[lane] = make([]int32, len(c.index.ops[lane]))
	}
	for i := range c.Holds {
		id := c.Holds[i].ID
		c.index.holds[id.Lane()][id.Number()-1] = int32(i) + 1
	}
}
