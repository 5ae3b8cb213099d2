package witness

import "hammerlock/internal/wire"

// flushing handles a request of FLUSHALL or FLUSHDB like a DEL of each lock that may be held.
func (r *Reader) flushing(q *wire.Request) {
	s := &sighting{Request: q, words: words{intent: frees}}
	for at, l := range r.ledgers {
		here := at.server == q.Server && (at.db == q.DB || q.Args[0] == "FLUSHALL")
		if here && (l.state.held() || len(l.changes) > 0 || !l.none()) {
			l.sent(s)
		}
	}
	if len(s.entries) > 0 {
		r.flights[flight{q.Conn, q.Number}] = s
	}
}

// flushed handles the effect of FLUSHALL or FLUSHDB like a DEL of each key.
func (r *Reader) flushed(e *wire.Effect) {
	for at, l := range r.ledgers {
		if at.server == e.Server && (at.db == r.database(e) || e.Args[0] == "FLUSHALL") {
			l.changes = append(l.changes, &change{at: e.At, closed: true, commands: [][]string{{"DEL", at.key}}})
			r.wait(l, true)
		}
	}
}
