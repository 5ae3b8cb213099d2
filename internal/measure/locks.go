package measure

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"hammerlock/history"
	"hammerlock/internal/witness"
	"hammerlock/results"
)

const (
	// mostRows limits the number of rows. Beyond it, programs share one row for each pattern of keys, because a
	// program may use another name in each connection.
	mostRows = 100
	others   = "others"
	// unseen is the program in rows for changes of keys that no observed command names. A script may have made up the
	// name of the key, or the command did not go through the proxy.
	unseen = "unattributed"
)

// Locks counts what happens to the locks of watched programs. Its memory depends on the number of programs and of key
// patterns, not on the number of keys. It is safe for concurrent use.
type Locks struct {
	pattern func(key string) string
	alone   bool // only the replication stream is read, so commands are not seen
	mu      sync.Mutex
	rows    map[rowName]*lockRow
	hot     hotLocks
}

type rowName struct{ pattern, program string }

type lockRow struct {
	rowName
	results.LockNumbers
	clients    results.LockClients
	waits      *waits
	hold       *histogram
	ofLease    *histogram // share of the lease that a hold used, in millionths
	handOff    *histogram
	held       time.Duration
	since      time.Duration // time of its first event
	waiting    int64
	violations map[string]int64
	LockTimes
}

type LockTimes struct{ Wait, Hold, HandOff Buckets }

type LockRow struct {
	results.LockNumbers
	LockTimes
}

// LockState has the measurements of a watched program's locks at one point in time.
type LockState struct {
	Rows []LockRow
	Hot  []results.HotLock
	// Taps maps the address of a server to whether its replication stream is being read at present. It has only the
	// servers whose streams are wanted.
	Taps map[string]bool
}

// NewLocks makes a Locks. The function pattern returns the pattern that a key belongs to. The argument alone is true
// if only the replication stream is read.
func NewLocks(pattern func(key string) string, alone bool) *Locks {
	return &Locks{pattern: pattern, alone: alone, rows: map[rowName]*lockRow{},
		hot: hotLocks{byKey: map[string]*hotLock{}, next: hotHalf}}
}

// The method row returns the row that counts the notice n. It makes the row if necessary.
func (l *Locks) row(n *witness.Notice) *lockRow {
	name := rowName{l.pattern(n.Key), n.Client}
	if name.program == "" && !l.alone {
		name.program = unseen
	}
	if r := l.rows[name]; r != nil {
		return r
	}
	if len(l.rows) >= mostRows {
		name.program = others
	}
	r := l.rows[name]
	if r == nil {
		w := &waits{to: history.Forever, granted: newCoarse(), censored: newCoarse(), entered: newCoarse()}
		r = &lockRow{rowName: name, since: n.At - n.For, waits: w, hold: newCoarse(),
			ofLease: newCoarse(), handOff: newCoarse(),
			violations: map[string]int64{witness.Overwritten: 0}}
		if !l.alone { // export these as 0 from the start, so that the first violation shows as growth
			r.violations[witness.ForeignRelease] = 0
		}
		l.rows[name] = r
	}
	return r
}

func (l *Locks) Notice(n witness.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(&n)
	switch n.Kind {
	case witness.Waits:
		r.waiting++
		r.clients.MostWaiting = max(r.clients.MostWaiting, r.waiting)
	case witness.GaveUp:
		if r.waiting--; n.For > 0 { // a client that never tried again did not wait
			r.waits.censored.record(n.For)
		}
	case witness.Refused:
		r.clients.Refused++
		l.hot.asked(&n).refused++
	case witness.Granted:
		l.hot.asked(&n).grants++
		r.granted(&n)
	case witness.Released, witness.Ended, witness.Taken, witness.Closed:
		r.ended(&n)
		if h := l.hot.byKey[n.Key]; h != nil {
			h.held += min(n.For, n.At-h.since)
		}
	case witness.LateRelease:
		r.clients.Late++
	case witness.Endless:
		r.Endless++
	case witness.Violation:
		r.violations[n.Cause]++
		if n.Cause == witness.ForeignRelease {
			r.clients.Foreign++
		}
	}
}

func (r *lockRow) granted(n *witness.Notice) {
	r.Grants++
	if n.Waited {
		r.waiting--
		r.waits.granted.record(n.For)
		r.Wait.record(n.For)
	}
	if n.Handed {
		r.handOff.record(n.Free)
		r.HandOff.record(n.Free)
	}
}

func (r *lockRow) ended(n *witness.Notice) {
	r.held += n.For
	switch n.Kind {
	case witness.Released:
		r.Releases++
	case witness.Ended:
		r.Expired++
	}
	r.hold.record(n.For)
	r.LockTimes.Hold.record(n.For)
	if n.Lease > 0 && n.Kind == witness.Released {
		r.ofLease.record(time.Duration(float64(n.For) / float64(n.Lease) * float64(time.Millisecond)))
	}
}

// Numbers returns a row of counts for each pattern and program, and the most requested locks. The argument open has
// the holds and waits in progress, which are included.
func (l *Locks) Numbers(now time.Duration, open []witness.Notice) (rows []LockRow, hot []results.HotLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := map[*lockRow][]witness.Notice{}
	for _, n := range open {
		r := l.row(&n)
		of[r] = append(of[r], n)
	}
	for _, r := range l.rows {
		rows = append(rows, r.numbers(now, of[r], l.alone))
	}
	slices.SortFunc(rows, func(a, b LockRow) int {
		return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(b.Grants, a.Grants),
			cmp.Compare(a.Program, b.Program))
	})
	return rows, l.hot.top(now, open, l.alone)
}

// The method numbers returns the counts of a row, including those holds and waits in progress that belong to the row.
func (r *lockRow) numbers(now time.Duration, open []witness.Notice, alone bool) LockRow {
	n, c, held := r.LockNumbers, r.clients, r.held
	n.Pattern, n.Program, n.Violations = r.pattern, r.program, maps.Clone(r.violations)
	w := *r.waits
	w.censored = newCoarse()
	w.censored.merge(r.waits.censored)
	for _, o := range open {
		if o.Kind == witness.Waits {
			c.Waiting++
			c.Longest = max(c.Longest, int64(o.For))
			w.censored.record(o.For)
			continue
		}
		n.HeldNow++
		n.HeldLongest = max(n.HeldLongest, int64(o.For))
		held += o.For
	}
	n.HeldMean = float64(held) / float64(max(now-r.since, 1))
	n.Hold, c.Wait, c.HandOff = r.hold.summary(), w.summary(), r.handOff.summary()
	share := r.ofLease.summary()
	n.OfLease = results.OfLease(&share)
	if c.MostWaiting = max(c.MostWaiting, c.Waiting); n.Grants > 0 {
		tries := float64(n.Grants+c.Refused) / float64(n.Grants)
		c.Tries = &tries
	}
	// clients are unknown if only the replication stream is read
	if !alone && (r.program != unseen || c.Refused+c.Late+c.Foreign > 0) {
		n.Clients = &c
	}
	return LockRow{n, r.LockTimes}
}
