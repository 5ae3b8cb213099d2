package witness

import (
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Finding is a violation that is proved by a server's replication stream alone.
type Finding struct {
	At   time.Duration
	Key  string
	What string
}

// endlessBound is the longest time for which a lock may exist without an expiry before that is reported. SETNX and
// EXPIRE are two commands, so a short time is normal.
const endlessBound = time.Second

// watch reports the violations that a change proves, whichever command caused it. q is that
// command; nil if it is unknown.
func (r *Reader) watch(l *ledger, c *change, d *diff, q *sighting) {
	switch {
	case len(d.granted) > 0 && len(d.ended) > 0 && !r.expired(l, c, d) && !d.after.scored:
		left := "without an end"
		if d.before.until > 0 {
			from, _ := r.ours(l.home, d.before.until)
			left = human.Duration(from-c.at) + " before the end of its lease"
		}
		n := Notice{Kind: Violation, Key: l.key, At: c.at, Cause: Overwritten}
		if q != nil {
			n.Client = q.Client
		}
		r.notice(n)
		r.find(Finding{c.at, l.key,
			fmt.Sprintf("%s took the place of %s, %s", short(d.granted[0]), short(d.ended[0]), left)})
	case len(d.granted) > 0:
		l.since = c.at
	}
	if l.told = l.told && d.after.held() && d.after.until == 0; d.after.held() && d.after.until == 0 {
		r.endless[l] = true
	}
}

func (r *Reader) find(f Finding) {
	if r.o.Violation != nil {
		r.o.Violation(f)
	}
}

// tellEndless reports, once, each lock that has had no expiry for longer than endlessBound.
func (r *Reader) tellEndless() {
	for l := range r.endless {
		switch {
		case !l.state.held() || l.state.until != 0:
			delete(r.endless, l)
		case r.now-l.since > endlessBound:
			delete(r.endless, l)
			if !l.told {
				l.told = true
				r.find(Finding{r.now, l.key,
					"is held without an end: if its holder dies, it is never granted again"})
			}
		}
	}
}

// Settled tells whether all effects have arrived that were promised by replies.
func (r *Reader) Settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.active {
		for e := range l.heard.all() {
			if e.says == did && e.intent != runs {
				return false
			}
		}
	}
	return true
}

// Since returns the operations so far, without the first n. Later replies may still change them.
func (r *Reader) Since(n int) []history.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops[max(n-r.dropped, 0):])
}

// Sums returns the counts so far, and the number of locks that are held.
func (r *Reader) Sums() (t Tallies, held int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.ledgers {
		if l.state.held() {
			held++
		}
	}
	return r.Tallies, held
}
