package witness

import (
	"slices"
	"time"

	"hammerlock/history"
)

// orphan is a hold that was released by a command without its token, on a connection that held nothing. Programs
// share connections, so this is first taken for the holder's own release. If a later command of the holder is
// answered that the lock is not its own, the release came from another client: a holder releases only once.
type orphan struct {
	hold  *hold
	q     *sighting  // the release
	op    history.ID // its operation
	again bool       // the hold's connection has asked for the lock again
}

// answered tells whether the release was answered before a given time. Otherwise it may be the holder's own: a holder
// that gets no reply may release again.
func (o *orphan) answered(by time.Duration) bool { return o.q.answered && !o.q.Lost && o.q.Return < by }

// mostOrphans is the number of orphans of a lock that are kept.
const mostOrphans = 4

// stranger tells whether a request that ended a hold neither has its token nor came on its connection.
func (r *Reader) stranger(q *sighting, owner *hold) bool {
	by := r.o.Holder
	unnamed := by.By == ByToken || by.By == ByArg && by.Arg >= len(q.Args)
	return !unnamed && r.o.Sites == 1 && r.Permits <= 1 && owner.who != r.who(q) && !q.hasToken(owner.token) &&
		!owner.outsider()
}

// share looks for a sign that several holders share a connection: a client asks for a lock that it still holds. It
// counts these signs in r.Improper and r.sharing.
func (r *Reader) share(b *book, who, token string, at time.Duration) {
	for _, o := range b.holds {
		if o.who == who && o.token != token && o.has(at) {
			r.Improper++
			r.sharing++
		}
	}
}

// orphaned adds a release by a stranger. If the user has promised that each command shows its client
// (Options.Holder), the stranger certainly held nothing.
func (r *Reader) orphaned(b *book, a *act) {
	if r.promised() {
		op := a.op
		op.Kind, op.Worker = history.Release, r.worker(op.Call, r.who(a.q))
		r.put(a.q, op)
		r.leave(op.Worker)
		r.notice(Notice{Kind: Violation, Key: b.key, Client: a.q.Client, At: op.Call, Cause: ForeignRelease})
		return
	}
	o := &orphan{hold: a.hold, q: a.q}
	if b.orphans = append(b.orphans, o); len(b.orphans) > mostOrphans {
		b.leave(r, b.orphans[0])
	}
	before := len(r.ops)
	if r.do(b, *a); len(r.ops) > before {
		o.op = r.ops[len(r.ops)-1].ID
		return
	}
	b.leave(r, o)
}

// robbed returns the hold of the first orphan that matches; nil if no orphan matches. The caller has seen a reply
// that says to the holder that the lock is not its own. So the orphan's release came from another client, and robbed
// attributes it to that client.
func (r *Reader) robbed(b *book, match func(*orphan) bool) *hold {
	i := slices.IndexFunc(b.orphans, match)
	if i < 0 {
		return nil
	}
	o := b.orphans[i]
	b.leave(r, o)
	w := r.worker(o.q.Call, r.who(o.q))
	r.leave(w)
	r.disown(o.op, w)
	if r.Releases--; o.q.intent == frees {
		r.Improper-- // the method holder has counted it
	}
	r.notice(Notice{Kind: Violation, Key: b.key, Client: o.q.Client, At: r.now, Cause: ForeignRelease})
	return o.hold
}

// disown attributes a release to the worker w, which held nothing.
func (s *scribe) disown(id history.ID, w int32) {
	for i := len(s.ops) - 1; i >= 0; i-- {
		if op := &s.ops[i]; op.ID == id {
			op.Hold, op.Token, op.Worker = 0, 0, w
			return
		}
	}
	s.unheld[id] = w
}

// leave removes an orphan, so that another client can use its worker number.
func (b *book) leave(r *Reader, o *orphan) {
	b.orphans = slices.DeleteFunc(b.orphans, func(other *orphan) bool { return other == o })
	r.leave(o.hold.worker)
}

// forget removes old orphans: by now, the holders' own commands would have been answered.
func (b *book) forget(r *Reader) {
	for _, o := range slices.Clone(b.orphans) {
		if min(o.hold.end, o.q.Call+keepBound) < r.now-roundBound {
			b.leave(r, o)
		}
	}
}

// all lists the holds, with those of orphans.
func (b *book) all() []*hold {
	list := slices.Clone(b.holds)
	for _, o := range b.orphans {
		list = append(list, o.hold)
	}
	return list
}
