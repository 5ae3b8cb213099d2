package checker

import (
	"hammerlock/history"
)

// updateCauses lists the causes of failed verdicts of this checker, the worst first.
var updateCauses = []string{history.Exclusion, history.ChangedRead, history.EarlyRead, history.StaleRead,
	history.StoreLoss, history.Overwritten, history.Duplicate, history.Corrupt, history.Phantom,
	history.ZombieWrite, history.Overrun}

// updates is the tree of stores: each store names the one that it replaces. The true history of the counter is one path
// in it, the chain that ends in the final value. All other stores are lost.
type updates struct {
	*Case
	named []bool  // by operation: another operation saw this store
	place []int32 // by operation: position of a store in its chain, growing; 0 = in no chain
	link  []int32 // by operation, plus one: the next store in the chain; outside of it, the first of the branch
	pages []page  // by key

	astray map[replacing]bool // acknowledged stores outside of their chains

	byValue []counted // by key, if no operation names the store that it saw

	acknowledged, lost int64
	unseen             int64 // lost stores that were seen, but not acknowledged
	unexplained        int64 // reads of a store, or of a value, that the history does not have
	blames[witness]
}

type page struct {
	end     int32 // last store of the chain, plus one
	first   int32 // first store of the chain, plus one
	base    int64 // value before the first store
	based   bool  // the base is known
	stores  bool
	final   int32 // the read at the end, plus one; 0 = none
	cropped bool  // the chain begins with a store that the history does not have
}

// witness is the evidence of a violation.
type witness struct{ store, other int32 } // indices in Ops; -1 = none

// nameless tells whether no operation in the history names the store that it saw.
func (u *updates) nameless() bool {
	some := false
	for i := range u.Ops {
		op := &u.Ops[i]
		if op.Seen != 0 && op.Kind != history.Acquire {
			return false
		}
		some = some || op.Outcome == history.OK &&
			((op.Kind == history.Load || op.Kind == history.Final) && op.Value > 0 || op.Kind == history.Store &&
				op.Value > 1)
	}
	return some
}

// begins tells whether a page began with the given value. The first operation on the page that saw no store tells the
// page's first value.
func (u *updates) begins(op *history.Op, value int64) bool {
	p := &u.pages[op.Key]
	if !p.based {
		p.base, p.based = value, true
	}
	return value == p.base
}

// blank tells whether a store is an increment without an answer, so that its value and the store that it replaced
// are unknown.
func blank(op *history.Op) bool {
	return op.Kind == history.Store && op.Outcome == history.Unknown && op.Value == 0
}

// seen is the store that an operation read; -1 if none existed, or if it is unknown.
func (u *updates) seen(op *history.Op) int32 {
	i := u.at(op.Seen)
	if i < 0 || u.Ops[i].Kind != history.Store || u.Ops[i].Key != op.Key {
		return -1
	}
	return i
}

// effective tells whether a store certainly took effect: it was acknowledged, or seen.
func (u *updates) effective(i int32) bool {
	op := &u.Ops[i]
	return op.Kind == history.Store && op.Key >= 0 &&
		(op.Outcome == history.OK || u.named[i])
}

// replacing identifies stores by their hold and the store that they replace.
type replacing struct{ hold, seen history.ID }

// counted has the values of a page, if no operation names the store that it saw.
type counted struct {
	least        int64 // smallest value that was read or replaced
	known        bool  // least is known
	most         int64 // greatest value that was written
	acknowledged int64
	unknown      int64
	final        int64
	read         int32             // the read at the end, plus one; 0 = none
	by           map[int64][]int32 // value -> acknowledged stores of it; all but one of them are lost
	last         int32             // the acknowledged store that was answered last
	doubled      int64             // number of stores that are lost because another one stored the same value
}
