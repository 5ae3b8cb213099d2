package witness

import (
	"time"

	"hammerlock/history"
	"hammerlock/internal/wire"
)

// database returns a number for the database of an effect. If Options.Alone is set, each server's stream is read
// independently. Then databases of two servers get different numbers, even if both are database 0.
func (r *Reader) database(e *wire.Effect) int {
	if r.o.Alone {
		return e.DB + e.Server<<20
	}
	return e.DB
}

// overheard adds operations for a change whose command was not seen. Their time is the time at which the change was
// read from the replication stream. The stream keeps the order of execution, and all its entries arrive about equally
// late.
func (r *Reader) overheard(l *ledger, c *change, d *diff) {
	b := l.book
	op := history.Op{Key: r.page(l.book), Call: c.at, Return: c.at, Outcome: history.OK}
	op.TTL = r.lease(l, c, d.after.until, nil)
	var overwritten []*hold
	for _, token := range d.ended {
		owner, end := b.owner(token), op
		owner.stop(c.at)
		end.TTL = 0
		switch {
		case r.expired(l, c, d):
			r.Expiries++
		case len(d.granted) > 0 && owner != nil:
			overwritten = append(overwritten, owner)
		case owner != nil:
			r.done(b, act{kind: history.Release, hold: owner, says: did, op: end})
		case len(d.granted) == 0:
			r.Releases++
		}
	}
	for _, token := range d.granted {
		if d.after.counts {
			op.Value, _ = d.after.owners.of(token)
		}
		if d.after.scored || len(d.after.owners) > 1 {
			op.Permits = 1
		}
		r.grant(b, act{kind: history.Acquire, server: l.server, token: token, says: did, op: op})
	}
	for _, h := range overwritten { // the stream did not show a release of these holds before they were overwritten
		op.TTL = 0
		op.Kind, op.Hold, op.Worker, op.Token, op.Outcome = history.End, h.id, h.worker, h.mark, history.Failed
		r.told(nil, h, op, false)
	}
	r.Permits = max(r.Permits, len(d.after.owners))
	if d.moved || len(d.deeper)+len(d.shallower) > 0 {
		for _, o := range d.after.owners {
			if h := b.owner(o.token); h != nil {
				r.extend(nil, h, before(op, h.end), false)
			}
		}
	}
}

// before moves the call of an extension to the end of the lease that it extends, if the call is later. The
// stream shows that the key still existed, so the extension was executed earlier than it was read. The end of
// the new lease stays the same.
func before(op history.Op, end time.Duration) history.Op {
	if early := op.Call - end; early > 0 {
		op.Call -= early
		if op.TTL > 0 {
			op.TTL += early
		}
	}
	return op
}
