package checker

import "hammerlock/history"

var lostUpdates = Checker{
	Name: history.Updates,
	Doc: "every acknowledged page view is in the chain of stores that ends in the final count, " +
		"and no reader sees the page change",
	Causes: updateCauses,
	Check:  judgeLostUpdates,
}

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
	final   bool // the page was read at the end
	cropped bool // the chain begins with a store that the history does not have
}

// witness is the evidence of a violation.
type witness struct{ store, other int32 } // indices in Ops; -1 = none

// judgeLostUpdates uses the idea of Elle (Kingsbury, Alvaro 2020): writes have names, so that their order
// is observable.
func judgeLostUpdates(c *Case) Verdict {
	u := &updates{Case: c, pages: make([]page, c.keys), astray: map[replacing]bool{}}
	if !c.viewed {
		return u.verdict()
	}
	if u.nameless() {
		return u.byValues()
	}
	u.named = history.Make[bool](&c.scratch, len(c.Ops))
	u.place, u.link = history.Make[int32](&c.scratch, len(c.Ops)), history.Make[int32](&c.scratch, len(c.Ops))
	u.read()
	u.deepest()
	u.chains()
	u.missing()
	u.stale()
	u.changed()
	return u.verdict()
}

// wrong blames a store, or a value that was read. It returns false if an unplanned event explains it.
func (u *updates) wrong(cause string, store, other int32) bool {
	return u.blame(cause, witness{store, other}, u.explains(cause, store, other))
}

// loses counts a lost page view, unless it is excused.
func (u *updates) loses(cause string, store, other int32) {
	if u.wrong(cause, store, other) {
		u.lost++
	}
}

// read notes which stores were seen, and compares the values that were read with the values that were written.
func (u *updates) read() {
	for i := range u.Ops {
		op := &u.Ops[i]
		if op.Key < 0 {
			continue
		}
		wrote := int64(0)
		switch {
		case op.Kind == history.Store:
			u.pages[op.Key].stores = u.pages[op.Key].stores || op.Outcome == history.OK
			if op.Outcome == history.OK {
				u.acknowledged++
			}
			wrote = 1
		case op.Kind == history.Final && op.Outcome == history.OK:
			u.pages[op.Key].final = true
			u.pages[op.Key].end = u.at(op.Seen) + 1
		case op.Kind != history.Load || op.Outcome != history.OK:
			continue
		}
		seen := u.seen(op)
		if seen >= 0 {
			u.see(seen, int32(i))
			wrote += u.Ops[seen].Value
		}
		if blank(op) {
			continue
		}
		if seen >= 0 && blank(&u.Ops[seen]) {
			u.unexplained++
			continue
		}
		if seen < 0 && op.Seen != 0 {
			u.unexplained++
			u.pages[op.Key].cropped = u.pages[op.Key].cropped || op.Kind == history.Final
			continue
		}
		if seen < 0 {
			if u.begins(op, op.Value-wrote) {
				continue
			}
			u.unexplained++ // the operation names no store, and its value differs from the initial one
			continue
		}
		if op.Kind == history.Store && op.Outcome == history.Failed {
			continue // it wrote nothing
		}
		if op.Value > wrote {
			u.wrong(history.Duplicate, int32(i), seen)
		} else if op.Value < wrote {
			u.wrong(history.Corrupt, int32(i), seen)
		}
	}
}

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

func (u *updates) see(store, by int32) {
	if !u.named[store] && u.Ops[store].Outcome == history.Failed {
		u.wrong(history.Phantom, store, by)
	}
	u.named[store] = true
}

// effective tells whether a store certainly took effect: it was acknowledged, or seen.
func (u *updates) effective(i int32) bool {
	op := &u.Ops[i]
	return op.Kind == history.Store && op.Key >= 0 &&
		(op.Outcome == history.OK || u.named[i])
}

// deepest chooses a last store for each page that was not read at the end: the one with which the fewest acknowledged
// stores are lost.
func (u *updates) deepest() {
	unread := false
	for k := range u.pages {
		unread = unread || !u.pages[k].final
	}
	if !unread {
		return
	}
	const acknowledged = 1 << 32
	// by operation: number of stores up to it, plus 1<<32 for each acknowledged one; -1 = being counted
	depth := history.Make[int64](&u.scratch, len(u.Ops))
	best := make([]int64, u.keys)
	var path []int32
	for i := range u.Ops {
		if !u.effective(int32(i)) || u.pages[u.Ops[i].Key].final {
			continue
		}
		path = path[:0]
		at := int32(i)
		for at >= 0 && depth[at] == 0 {
			depth[at] = -1
			path = history.Append(&u.scratch, path, at)
			at = u.seen(&u.Ops[at])
		}
		d := int64(0)
		if at >= 0 {
			d = max(depth[at], 0)
		}
		for j := len(path) - 1; j >= 0; j-- {
			if d++; u.Ops[path[j]].Outcome == history.OK {
				d += acknowledged
			}
			depth[path[j]] = d
		}
		if k := u.Ops[i].Key; depth[i] > best[k] {
			best[k], u.pages[k].end = depth[i], int32(i)+1
		}
	}
}

// chains marks the chains that end in the final values. It goes through the history backwards, once. The history is
// sorted by return, so a store may come after the store that replaced it. Then the chain is followed immediately.
func (u *updates) chains() {
	const ahead = -1 // place of a store in the chain that the loop has not reached yet
	for k := range u.pages {
		if end := u.pages[k].end; end > 0 {
			u.place[end-1] = ahead
		}
	}
	place := int32(len(u.Ops))
	for i := place - 1; i >= 0; i-- {
		for at, next := i, u.link[i]; at >= i && u.place[at] == ahead; place-- {
			op := &u.Ops[at]
			if u.place[at] = 0; op.Kind != history.Store || op.Key < 0 {
				u.wrong(history.Corrupt, at, next-1)
				break
			}
			u.place[at], u.link[at] = place, next
			p, seen := &u.pages[op.Key], u.seen(op)
			p.first, next = at+1, at+1
			switch {
			case seen < 0:
				p.cropped = p.cropped || op.Seen != 0 || blank(op)
			case u.place[seen] != 0:
				u.wrong(history.Corrupt, seen, next-1) // the chain is a cycle
				seen = -1
			default:
				u.place[seen], u.link[seen] = ahead, next
			}
			at = seen
		}
	}
}

// missing finds the cause for every acknowledged store outside of its chain.
func (u *updates) missing() {
	for i := range u.Ops {
		if u.place[i] > 0 {
			continue
		}
		if op := &u.Ops[i]; op.Kind == history.Store && op.Outcome == history.OK {
			u.astray[replacing{op.Hold, op.Seen}] = true
		}
		if !u.effective(int32(i)) || u.pages[u.Ops[i].Key].cropped {
			continue
		}
		left := u.left(int32(i))
		if op := &u.Ops[left]; op.Seen != 0 && u.seen(op) < 0 {
			continue // it replaced a store outside of the history, which may be in the chain
		}
		cause, other := u.cause(left)
		if u.Ops[i].Outcome != history.OK {
			u.unseen++
			continue
		}
		if u.explains(cause, left, other) != nil { // a late visit can have overwritten only some stores
			if later := u.overwrites(int32(i), other); later != other {
				cause, left, other = u.conflict(int32(i), later), int32(i), later
			}
		}
		u.loses(cause, left, other)
	}
}

// overwrites returns the first store of the chain, beginning with a given one, that can have overwritten a lost store.
// It skips stores that were answered before the lost store was called.
func (u *updates) overwrites(lost, from int32) int32 {
	op := &u.Ops[lost]
	for from >= 0 && u.before(u.Ops[from].Return, op.Call, u.Ops[from].Process, op.Process) && u.link[from] > 0 {
		from = u.link[from] - 1
	}
	return from
}

// left returns the store at which the branch of a lost store left the chain. Results are kept in u.link, so that each
// branch is followed once.
func (u *updates) left(i int32) int32 {
	var path []int32
	at := i
	for u.link[at] == 0 {
		u.link[at] = -1 // being followed
		path = append(path, at)
		up := u.seen(&u.Ops[at])
		if up < 0 || u.place[up] > 0 {
			break
		}
		at = up
	}
	root := at
	if u.link[at] > 0 {
		root = u.link[at] - 1
	}
	for _, j := range path {
		u.link[j] = root + 1
	}
	return root
}
