package witness

import (
	"hammerlock/history"
	"hammerlock/internal/wire"
)

// database returns the number of a server's database. When streams are read independently, the databases of different
// servers are different.
func (r *Reader) database(e *wire.Effect) int {
	if r.o.Alone {
		return e.DB + e.Server<<20
	}
	return e.DB
}

// overheard makes operations of a change whose command was not seen. Their time is when the replication stream showed
// the change: the stream has the order of execution, and everything in it is late by about the same time.
func (r *Reader) overheard(l *ledger, c *change, d *diff) {
	b := l.book
	op := history.Op{Key: r.page(l.subject), Call: c.at, Return: c.at, Outcome: history.OK}
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
			op.Value = d.after.owners[token]
		}
		if d.after.scored || len(d.after.owners) > 1 {
			op.Permits = 1
		}
		r.grant(b, act{kind: history.Acquire, server: l.server, token: token, says: did, op: op})
	}
	for _, h := range overwritten { // these were not released before, even if nothing more is seen of them
		op.TTL = 0
		op.Kind, op.Hold, op.Worker, op.Token, op.Outcome = history.End, h.id, h.worker, h.mark, history.Failed
		r.told(nil, h, op, false)
	}
	r.Permits = max(r.Permits, len(d.after.owners))
	if d.moved || len(d.deeper)+len(d.shallower) > 0 {
		for token := range d.after.owners {
			if h := b.owner(token); h != nil {
				r.extend(nil, h, op, false)
			}
		}
	}
}
