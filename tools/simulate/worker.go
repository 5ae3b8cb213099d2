package main

import (
	"time"

	"hammerlock/history"
)

// margin is a time before the deadline. In it, a holder does not store any more, so that the counter's answer comes
// before the deadline.
const margin = 2 * time.Millisecond

func (t *thread) work() {
	w := t.w
	for w.now < w.length {
		t.visit()
		t.sleep(w.between(0, 4*w.retry))
	}
}

// visit acquires a lock, uses the page and releases the lock.
func (t *thread) visit() {
	w := t.w
	begun := t.stamp()
	q := request{page: int32(w.r.IntN(len(w.pages))), permits: w.mode(), owner: uint64(t.worker) + 1}
	if w.perVisit {
		q.owner = w.token()
	}
	give := w.now + w.h.Wait
	result, why := history.Failed, history.Impatient
	for {
		h := t.acquire(q, nil)
		if h != nil && h.granted {
			result, why = t.use(h, &q)
			break
		}
		switch { // the lock may have been granted
		case h == nil:
		case w.ttl == 0:
			t.leave(h)
		case !w.one(4):
			t.release(h)
		}
		if w.now > give {
			t.ask(w.sites, w.patience(), func(s *site) reply { return s.forget(q) })
			break
		}
		t.sleep(w.between(w.retry/2, w.retry*3/2))
	}
	if w.visits {
		op := t.call(history.Op{Kind: history.End, Key: q.page, Due: begun})
		t.done(op, result, why)
		op.Call = begun
	}
}

// mode draws the number of permits for a visit; 0 = all.
func (w *world) mode() int {
	switch c := &w.h.Claims; {
	case c.Readers && !w.one(3):
		return 1
	case c.Permits > 0 && !w.one(8):
		return 1 + w.r.IntN(c.Permits-1)
	default:
		return 0
	}
}

func (t *thread) use(h *hold, q *request) (history.Outcome, history.Reason) {
	w := t.w
	if w.h.Claims.Renews && w.wrong != stopsRenewing {
		w.spawn(t.p, t.worker, w.lane(), func(t *thread) { t.watch(h) }).guards = t
	}
	seen, value, ok := t.load(h)
	t.during(h)
	if h.permits > 0 && w.h.Claims.Upgrades && w.one(4) {
		reader := h
		if h, ok = t.upgrade(h, q); h != reader {
			seen, value, ok = t.load(h)
		}
	}
	result, why := history.Failed, history.Expired
	switch {
	case !ok:
	case h.lost || t.stamp()+margin >= h.until && w.wrong != heedless && !w.h.Fenced:
	case h.permits > 0:
		t.load(h)
		result, why = history.OK, history.None
	default:
		result, why = t.store(h, seen, value)
	}
	t.leave(h)
	return result, why
}

// during is a holder's work between load and store, with extensions and re-entries.
func (t *thread) during(h *hold) {
	w := t.w
	stay := w.between(0, w.stay)
	if w.one(w.late) && w.ttl > 0 {
		stay += w.between(w.ttl/2, w.ttl*2)
	}
	if w.h.Claims.Reentrant {
		for w.one(2) && t.stamp()+margin < h.until {
			t.reenter(h)
			if h.count > 1 && w.one(3) {
				t.release(h)
			}
		}
	}
	for stay > 0 {
		part := stay
		if w.extends && !w.one(w.late) {
			part = min(stay, w.ttl/2)
		}
		t.sleep(part)
		if stay -= part; (stay > 0 || w.one(8)) && w.extends && (t.stamp() < h.until || w.one(w.late)) {
			t.extend(h, w.patience())
		}
		if h.lost {
			return
		}
	}
}

// leave releases a hold as many times as it was acquired. If an answer is lost, it tries again, because a hold without
// expiry would stay for ever.
func (t *thread) leave(h *hold) {
	w := t.w
	for tries := 0; tries < 8; tries++ {
		outer := h.count <= 1
		o, left := t.release(h)
		again := o == history.Unknown && outer && (w.ttl == 0 || w.one(2))
		if !again && (h.lost || outer && left == 0 && o != history.OK || w.counts && left == 0 && o == history.OK ||
			!w.counts && h.count <= 0) {
			break
		}
	}
	if w.twice && w.one(3) {
		if w.one(2) {
			t.sleep(w.between(0, 2*w.retry))
		}
		t.release(h)
	}
}

// upgrade tries to turn a reader into the writer. It returns the hold that the visit goes on with. The second result
// is false if the outcome is unknown: then the visit must not go on.
func (t *thread) upgrade(h *hold, q *request) (*hold, bool) {
	w := t.w
	up := *q
	up.permits = 0
	for range 3 {
		h2 := t.acquire(up, h)
		switch {
		case h2 == nil:
			t.sleep(w.between(w.retry/2, w.retry))
		case h2.granted:
			h.over = true
			h.to = min(h.to, w.now)
			return h2, true
		default:
			t.release(h2)
			return h, false
		}
	}
	return h, true
}

// watch renews a hold in the background, and tells its holder when it is lost.
func (t *thread) watch(h *hold) {
	w := t.w
	wait := w.ttl / 3
	for {
		left := h.until - t.stamp()
		t.sleep(max(0, min(wait, left)))
		if t.guards.dead || h.lost || h.over && w.wrong != zombieWatchdog {
			return
		}
		if t.stamp() >= h.until && w.wrong != zombieWatchdog && w.wrong != extendRecreates {
			op := t.call(history.Op{Kind: history.Lose, Key: h.page, Hold: h.id})
			t.done(op, history.OK, history.None)
			h.loses(w)
			return
		}
		over := h.over
		switch t.extend(h, max(w.ttl/6, time.Millisecond)) {
		case history.OK:
			wait = w.ttl / 3
		case history.Failed:
			return
		default:
			wait = w.ttl / 20
		}
		if over {
			return
		}
	}
}

func (t *thread) load(h *hold) (seen history.ID, value int64, ok bool) {
	w, p := t.w, &t.w.pages[h.page]
	op := t.call(history.Op{Kind: history.Load, Key: h.page, Hold: h.id})
	r := t.ask(w.counter(), time.Second, func(*site) reply {
		if w.h.Fenced && h.fence < p.fence {
			return reply{said: busy}
		}
		p.fence = max(p.fence, h.fence)
		if w.slips(staleCounter) {
			return reply{said: yes, value: p.oldValue, seen: p.old}
		}
		return reply{said: yes, value: p.value, seen: p.seen}
	})[0]
	if r.said != yes {
		t.done(op, history.Failed, history.Fenced)
		return 0, 0, false
	}
	t.done(op, history.OK, history.None)
	op.Value, op.Seen = r.value, r.seen
	return r.seen, r.value, true
}

// store writes the value that was read, plus one.
func (t *thread) store(h *hold, seen history.ID, value int64) (history.Outcome, history.Reason) {
	w, p := t.w, &t.w.pages[h.page]
	op := t.call(history.Op{Kind: history.Store, Key: h.page, Hold: h.id, Seen: seen, Value: value + 1})
	if w.h.Claims.Fences {
		op.Fence = h.fence
	}
	r := t.ask(w.counter(), time.Second, func(*site) reply {
		if w.h.Fenced && h.fence < p.fence && w.wrong != unfencedStore {
			return reply{said: busy}
		}
		p.fence = max(p.fence, h.fence)
		if !w.slips(forgetfulCounter) {
			p.old, p.oldValue = p.seen, p.value
			p.seen, p.value = op.ID, value+1
		}
		return reply{said: yes}
	})[0]
	switch {
	case r.said != yes:
		t.done(op, history.Failed, history.Fenced)
	case w.one(200):
		t.done(op, history.Unknown, history.Dropped)
	default:
		t.done(op, history.OK, history.None)
	}
	return op.Outcome, op.Reason
}

// counter is the store of the page views, which no disturbance reaches.
func (w *world) counter() []*site { return []*site{{w: w, counter: true}} }
