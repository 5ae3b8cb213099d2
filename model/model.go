// Package model has one lock of one page as its servers have it: who holds it, and between which times the lease of a
// holder began. Explain finds the cheapest story of a page: an instant for each call, what the servers did without a
// call, and the mistakes of the lock without which no story is possible. The model knows exclusive locks. It judges no
// beliefs and no stores.
package model

import (
	"time"

	"hammerlock/history"
)

// Kind says what a call asks for, and what it was answered.
type Kind uint8

// The kinds of calls. A call of another outcome changes nothing in the servers and shows nothing of them: leave it out.
const (
	Grant   Kind = iota // an acquire that was granted, or may have been
	Extend              // an extension that succeeded, or may have
	Release             // a release that succeeded, or may have
	Lost                // an extension or release that was told that the lock is not its own
	Seen                // the key of the hold was seen in the servers
)

// Call is one call of a hold. Its effect lies between From and To.
type Call struct {
	ID   history.ID // 0: a release that may have been called, of a worker that died
	Hold int32      // in Page.Holds
	Kind Kind
	// Unanswered says that the call had its effect at any time from From on, or never. Its To is history.Forever.
	Unanswered bool
	Busy       bool // Lost: the answer was that another has it
	Anew       bool // Extend: a re-entry, which is a new grant where the hold was over
	Open       bool // Grant, Extend: the lease is for TTL at least, and its end is not known
	Endless    bool // Seen: the key had no expiry, or a later one than its lease can have
	From, To   time.Duration
	Server     int           // Seen: where
	TTL        time.Duration // Grant, Extend: the lease that was asked for; 0 = without expiry
}

// Hold is what all calls with one token are about. It is granted once.
type Hold struct {
	ID     history.ID // of its acquire
	Stands bool       // no accident can have made the servers forget it
}

// Window is a time in which something was at work that no lock answers for.
type Window struct {
	From, To time.Duration
	Planned  bool  // a fault of the plan
	Forgets  bool  // the servers may lose what they have
	Restores bool  // they may have again what they had before
	Revives  bool  // they may have again what had expired, but nothing that was given back
	Late     bool  // leases may last longer
	Server   int   // which one may forget; -1 = any
	Op       int32 // for the caller
}

// Rules say what the servers promise.
type Rules struct {
	Expires bool          // leases end
	Owned   bool          // a release is answered with success only if the lock was its own
	Single  bool          // there is one server: no other can answer for what it forgot
	Sites   int           // how many independent servers vote; 0 = one server
	Rate    float64       // by this part the servers' clocks may run fast or slow
	Round   time.Duration // by this a server rounds its clock
	Patient time.Duration // a release that takes as long may be sent again; 0 = none is
	Linger  time.Duration // by this a lease may last longer than was asked for
}

// Least is T1, the shortest life of a lease; history.Forever if it has no end.
func (r *Rules) Least(ttl time.Duration) time.Duration {
	if !r.Expires || ttl <= 0 {
		return history.Forever
	}
	return max(ttl-r.drift(ttl), 0)
}

// Most is T2, the longest life of a lease; history.Forever if it has no end.
func (r *Rules) Most(ttl time.Duration) time.Duration {
	if !r.Expires || ttl <= 0 {
		return history.Forever
	}
	return plus(ttl, r.drift(ttl)+r.Linger)
}

func (r *Rules) drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*r.Rate) + r.Round
}

// plus adds a duration to a time; beyond the last time it is Forever.
func plus(t, d time.Duration) time.Duration {
	if d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// Page is all that is known of the lock of one page.
type Page struct {
	Rules
	Holds   []Hold
	Calls   []Call   // in any order
	Windows []Window // in any order
}
