package checker

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// cause returns the reason why a branch of stores was lost, given its first store. It also returns the rival, the
// store of the chain that replaced the same store. If none exists, it returns the read at the end, or -1.
func (u *updates) cause(branch int32) (string, int32) {
	op := &u.Ops[branch]
	rival := int32(-1)
	if up := u.seen(op); up >= 0 && u.place[up] > 0 {
		rival = u.link[up] - 1
	} else if op.Seen == 0 {
		rival = u.pages[op.Key].first - 1
	}
	if rival < 0 {
		return u.forgotten(history.Overwritten), u.pages[op.Key].final - 1
	}
	return u.conflict(branch, rival), rival
}

// forgotten returns the cause for a store that the counter acknowledged and then lost. If the counter is on the
// topology under test, it may lose stores, so the cause is StoreLoss; otherwise it is the given cause.
func (u *updates) forgotten(otherwise string) string {
	if u.Counter == history.CounterOnTopology {
		return history.StoreLoss
	}
	return otherwise
}

// conflict returns the cause of a lost view if two stores replaced the same store.
func (u *updates) conflict(a, b int32) string {
	for _, pair := range [2][2]int32{{a, b}, {b, a}} {
		store, load := &u.Ops[pair[0]], u.load(pair[1])
		if u.early(store, pair[1], load) {
			return u.forgotten(history.EarlyRead)
		}
		if load < 0 || !u.before(store.Return, u.Ops[load].Call, store.Process, u.Ops[load].Process) {
			continue
		}
		if store.Outcome == history.OK {
			return u.forgotten(history.StaleRead) // it was acknowledged, and a later load did not see it
		}
		return history.ZombieWrite // it took effect after its visit had given up
	}
	cause := history.Exclusion
	for _, i := range [2]int32{a, b} {
		h := u.hold(u.Ops[i].Hold)
		if h == nil {
			continue
		}
		end, load := h.trusted(), u.load(i)
		if u.Ops[i].Call >= end || load >= 0 && u.Ops[load].Call >= end {
			return history.Overrun
		}
		if u.Ops[i].Return > h.lapse() {
			cause = history.ZombieWrite
		}
	}
	return cause
}

// ofTheLock lists the causes by which a store is lost although the counter is correct: both visits held the lock, or
// one was late.
var ofTheLock = []string{history.Exclusion, history.ChangedRead, history.Overrun, history.ZombieWrite}

// early tells whether the number that a store incremented was read before the store's hold was requested. If the load
// is known, its call tells that. Otherwise, the number was read early if it does not count another store that had
// returned before the request.
func (u *updates) early(other *history.Op, store, load int32) bool {
	h := u.hold(u.Ops[store].Hold)
	if h == nil {
		return false
	}
	call := u.acquire(h).Call
	if load >= 0 {
		return u.Ops[load].Call < call
	}
	return other.Outcome == history.OK && u.before(other.Return, call, other.Process, h.Process)
}

// explains returns the window that may have lost a store without fault of the lock; nil if none exists. A late visit
// is excused if its process was paused for long enough. A planned fault explains only a store that was on its way when
// the fault began, because no lock can stop such a store. If two visits held the lock, servers may have forgotten one
// hold. Otherwise the counter's server may have forgotten the store.
func (u *updates) explains(cause string, store, other int32) *window {
	if !slices.Contains(ofTheLock, cause) {
		to := u.end()
		if other >= 0 {
			to = u.Ops[other].Latest()
		}
		return u.miscounted(u.Ops[store].Key, u.Ops[store].Call, max(to, u.Ops[store].Latest()))
	}
	if other >= 0 {
		if a, b := u.hold(u.Ops[store].Hold), u.hold(u.Ops[other].Hold); a != nil && b != nil {
			if w := unplanned(u.unfenced(a, b)); w != nil {
				return w
			}
		}
	}
	for _, i := range [2]int32{store, other} {
		if i < 0 {
			continue
		}
		op, h := &u.Ops[i], u.hold(u.Ops[i].Hold)
		if h == nil {
			continue
		}
		if at, late := u.lateness(cause, h, i); late > 0 {
			excuse := u.Case.late
			if cause == history.Overrun || cause == history.ZombieWrite {
				late /= 2 // a worker in a paused process is also late before and after the pause
				excuse = u.Case.overran
			}
			if w := excuse(op.Process, h.Return, h.lapse(), at, late); w != nil {
				return w
			}
		}
		if cause == history.ZombieWrite && op.Call < h.trusted() {
			still := u.stillFor(op.Process, op.Call, op.Return)
			if w := u.stopped(op.Process, op.Call, op.Return, 0); w != nil && op.Return-still <= h.lapse() {
				return w
			}
		}
		if w := unplanned(u.forgot(h, op.Latest())); w != nil {
			return w
		}
	}
	return nil
}

// lateness returns the time at which a visit used the counter, and how long before that time its hold had ended.
func (u *updates) lateness(cause string, h *hold, i int32) (at, late time.Duration) {
	at = u.Ops[i].Return
	if cause == history.Overrun && u.Ops[i].Kind == history.Store {
		at = u.Ops[i].Call
		if load := u.load(i); load >= 0 {
			at = max(at, u.Ops[load].Call)
		}
	}
	return at, at - h.lapse()
}

// load returns the load whose value a store replaced; -1 if it is unknown. The load comes before the store in the same
// lane, the log of one worker.
func (u *updates) load(store int32) int32 {
	op := &u.Ops[store]
	h := u.hold(op.Hold)
	if h == nil {
		return -1
	}
	at := h.Uses[0]
	for id := op.ID - 1; h.Uses[1] != store && id > op.Hold && id.Number() > 0; id-- { // within its lane
		if at = u.at(id); at >= 0 && u.Ops[at].Kind == history.Load && u.Ops[at].Hold == op.Hold {
			break
		}
		at = -1
	}
	if at < 0 || u.Ops[at].Seen != op.Seen || u.Ops[at].Call > op.Call {
		return -1
	}
	return at
}

// stale finds loads that saw too old a store: a newer store had returned before the load was called. If the load's
// visit lost its own store, that is blamed instead. Only the chain is examined: a page with another branch has
// failed already.
func (u *updates) stale() {
	loadOrStore := func(op *history.Op) bool {
		return op.Outcome == history.OK && (op.Kind == history.Load || op.Kind == history.Store)
	}
	place := func(i int32) int64 {
		if u.Ops[i].Kind == history.Store && u.place[i] > 0 {
			return int64(u.place[i])
		}
		return -1
	}
	u.inRealTime(loadOrStore, place, func(i, returned int32) {
		op := &u.Ops[i]
		if op.Kind != history.Load || returned < 0 || u.pages[op.Key].cropped {
			return
		}
		seen := u.seen(op)
		if op.Seen != 0 && (seen < 0 || u.place[seen] == 0) {
			return
		}
		if seen >= 0 && u.place[seen] >= u.place[returned] {
			return
		}
		if u.astray[replacing{op.Hold, op.Seen}] {
			return
		}
		u.wrong(history.StaleRead, returned, i)
	})
}

func (u *updates) verdict() Verdict {
	v := Verdict{Exposed: u.acknowledged, Misses: map[string]int64{}}
	worst := u.into(&v, updateCauses)
	if u.unseen > 0 {
		v.Misses["unacknowledged page views lost"] = u.unseen
	}
	unread := 0
	for k := range u.pages {
		if p := &u.pages[k]; p.stores && p.final == 0 {
			unread++
		}
	}
	switch {
	case v.Status == Fail:
		u.tell(&v, worst)
		v.Summary = fmt.Sprintf("%s of %s acknowledged page views lost", human.Count(u.lost),
			human.Count(u.acknowledged))
		if unread > 0 {
			v.Summary += fmt.Sprintf(", at least: %d pages were not read at the end", unread)
		} else if u.lost == 0 {
			v.Summary += ", but the counter showed what it should not"
		}
	case u.acknowledged == 0:
		if v.Summary, v.scant = "no page view was stored", true; u.Wire != "" {
			v.Summary = "no write of data was seen that can be attributed to a holder"
		}
	case u.excused > 0:
		v.Summary = u.excuseText("lost page views")
	case u.unexplained > 0 && !u.Allowed:
		v.Summary = fmt.Sprintf("%s reads saw stores that the history does not hold", human.Count(u.unexplained))
	case unread > 0 && !u.Allowed:
		v.Summary = fmt.Sprintf("%d pages were not read at the end", unread)
	default:
		v.Status = Pass
		v.Summary = fmt.Sprintf("%s page views acknowledged, none lost: %s", human.Count(u.acknowledged),
			atMost(u.acknowledged))
		if u.unexplained > 0 || unread > 0 {
			v.Summary += fmt.Sprintf("; without what is missing: %s reads of its stores, %d pages not read at the end",
				human.Count(u.unexplained), unread)
		}
	}
	return v
}

// tell adds the two visits of a finding to the verdict: their loads and stores, sorted by call.
func (u *updates) tell(v *Verdict, f witness) {
	var list []int32
	for _, i := range [2]int32{f.store, f.other} {
		if i < 0 {
			continue
		}
		list = append(list, i)
		if u.Ops[i].Kind == history.Store {
			if load := u.load(i); load >= 0 {
				list = append(list, load)
			}
		}
		if h := u.hold(u.Ops[i].Hold); h != nil {
			v.Story = append(v.Story, granted(u.Case, h))
		}
	}
	sort.Slice(list, func(i, j int) bool { return u.Ops[list[i]].Call < u.Ops[list[j]].Call })
	for _, i := range list {
		v.Evidence = append(v.Evidence, u.Ops[i])
		v.Story = append(v.Story, u.sentence(&u.Ops[i]))
	}
}

func (u *updates) sentence(op *history.Op) string {
	s := ""
	switch op.Kind {
	case history.Load:
		s = fmt.Sprintf("%s loaded %d, by %s, at %s", who(op.Worker), op.Value, op.Seen, clock(op.Return))
	case history.Store:
		s = fmt.Sprintf("%s stored %d in place of %s at %s, answered %s at %s", who(op.Worker), op.Value, op.Seen,
			clock(op.Call), op.Outcome, clock(op.Return))
	default:
		return fmt.Sprintf("at the end, at %s, page %d had %d views, by %s", clock(op.Return), op.Key, op.Value,
			op.Seen)
	}
	if h := u.hold(op.Hold); h != nil && op.Call >= h.trusted() {
		s += fmt.Sprintf(", without the lock: it had ended at %s", clock(h.trusted()))
	}
	return s
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
