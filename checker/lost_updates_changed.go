package checker

import "hammerlock/history"

// changed finds readers that loaded a page at the beginning and at the end of their visit and saw different stores:
// another worker stored in between. Clocks matter only for the cause.
func (u *updates) changed() {
	for _, n := range u.byCall {
		h := &u.holds[n]
		if h.Permits == 0 || h.Uses[0] < 0 || h.Uses[1] < 0 {
			continue
		}
		first, again := &u.Ops[h.Uses[0]], &u.Ops[h.Uses[1]]
		if again.Kind != history.Load || first.Outcome != history.OK || again.Outcome != history.OK ||
			first.Seen == again.Seen && first.Value == again.Value || u.Heeds && again.Return > h.lapse() {
			continue // whoever heeds a deadline uses no answer that came after it
		}
		store := u.seen(again)
		if store < 0 && u.byValue != nil {
			if by := u.byValue[again.Key].by[again.Value]; len(by) > 0 {
				store = by[0]
			}
		}
		u.wrong(u.interference(h, again, store), h.Uses[1], store)
	}
}

// interference returns the cause of a changed page. Either the reader loaded after its hold had ended, or the writer
// stored after its own hold had ended, or both held the lock.
func (u *updates) interference(h *hold, again *history.Op, store int32) string {
	if again.Return > h.lapse() {
		return history.Overrun
	}
	if store >= 0 {
		op := &u.Ops[store]
		if w := u.hold(op.Hold); w != nil && op.Call >= w.trusted() {
			return history.Overrun
		} else if w != nil && op.Return > w.lapse() {
			return history.ZombieWrite
		}
	}
	return history.ChangedRead
}
