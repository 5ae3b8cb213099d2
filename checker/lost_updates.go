package checker

import "hammerlock/history"

var lostUpdates = Checker{
	Name: history.Updates,
	Doc: "every acknowledged page view is in the chain of stores that ends in the final count, " +
		"and no reader sees the page change",
	Causes: updateCauses,
	Check:  judgeLostUpdates,
}

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

// deepest chooses a last store for each page that was not read at the end: the one with which the fewest acknowledged
// stores are lost.
func (u *updates) deepest() {
	unread := false
	for k := range u.pages {
		unread = unread || u.pages[k].final == 0
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
		if !u.effective(int32(i)) || u.pages[u.Ops[i].Key].final > 0 {
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
			u.pages[op.Key].final = int32(i) + 1
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

func (u *updates) see(store, by int32) {
	if !u.named[store] && u.Ops[store].Outcome == history.Failed {
		u.wrong(history.Phantom, store, by)
	}
	u.named[store] = true
}
