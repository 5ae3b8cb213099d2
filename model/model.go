// Package model describes one lock of one page as its servers see it: who holds it, and between which times each lease
// began. Explain finds the cheapest story of a page: the instant of each call, events without a call, and the
// deviations that the story needs. A deviation is a step that a correct lock does not make. The package knows
// exclusive locks only. It judges neither what clients believe nor the stores.
package model

import (
	"time"

	"hammerlock/history"
)

// Kind says what a call asks for, and what the answer was.
type Kind uint8

// The kinds of calls. Callers leave out calls with other outcomes: they neither change the servers nor tell anything
// about them.
const (
	Grant   Kind = iota // an acquire that was granted, or may have been
	Extend              // an extension that succeeded, or may have
	Release             // a release that succeeded, or may have
	Lost                // an extension or release that was refused: the lock is not its own
	Seen                // the hold's key was seen in the servers
)

// Call is one call of a hold. Its effect lies between From and To.
type Call struct {
	ID   history.ID // 0: a release that a worker may have called before it died
	Hold int32      // index in Page.Holds
	Kind Kind
	// Unanswered says that the effect came at any time after From, or never. To is history.Forever.
	Unanswered bool
	Busy       bool // for Lost: the answer said that another holder has the lock
	Anew       bool // for Extend: it is a re-entry; if the hold was over, it is a new grant
	Open       bool // for Grant and Extend: the lease lasts for TTL or longer, without a known end
	Endless    bool // for Seen: the key had no expiry, or a later one than its lease allows
	From, To   time.Duration
	Server     int           // for Seen: the server that had the key
	TTL        time.Duration // for Grant and Extend: the lease that was requested; 0 = without expiry
}

// looks returns the time at which a call looks whether its hold is alive, if it takes effect at the given time. For an
// extension this may be earlier: a server may look as soon as the extension is called, be stopped, and set the new
// expiry just before it answers.
func (c *Call) looks(at time.Duration) time.Duration {
	if c.Kind == Extend && !c.Unanswered {
		return c.From
	}
	return at
}

// Hold is one grant of the lock, or a possible one. All calls with its token belong to it.
type Hold struct {
	ID       history.ID // of its acquire
	Survives []int32    // indices in Page.Windows: the servers did not forget it in these windows
}

// Window is a period in which an event outside the lock may have changed the servers' state.
type Window struct {
	From, To time.Duration
	Planned  bool  // a fault of the plan
	Forgets  bool  // the servers may lose data
	Restores bool  // earlier data may come back
	Revives  bool  // expired holds may come back, but no released ones
	Late     bool  // leases may last longer
	Server   int   // the server that may forget; -1 = any
	Op       int32 // a number that only the caller uses
}

// Rules say what the servers promise.
type Rules struct {
	Expires bool          // leases end
	Owned   bool          // a release is answered with success only if the lock was its own
	Single  bool          // there is only one server: no other can answer for a hold that it forgot
	Sites   int           // how many independent servers vote; 0 = one server
	Rate    float64       // largest clock drift of the servers, as a fraction
	Round   time.Duration // rounding of a server's clock
	Patient time.Duration // a release that takes at least this long may have been sent twice; 0 = never
	Linger  time.Duration // how much longer a lease may last than requested
}

// Least is T1, the shortest life of a lease; history.Forever if it has no end.
func (r *Rules) Least(ttl time.Duration) time.Duration {
	if !r.Expires || ttl <= 0 {
		return history.Forever
	}
	return max(ttl-r.Drift(ttl), 0)
}

// Most is T2, the longest life of a lease; history.Forever if it has no end.
func (r *Rules) Most(ttl time.Duration) time.Duration {
	if !r.Expires || ttl <= 0 {
		return history.Forever
	}
	return plus(ttl, r.Drift(ttl)+r.Linger)
}

// Drift is how much shorter or longer a server's lease can be than requested, because of its clock.
func (r *Rules) Drift(ttl time.Duration) time.Duration {
	return time.Duration(float64(ttl)*r.Rate) + r.Round
}

// plus adds a duration to a time, and stops at Forever.
func plus(t, d time.Duration) time.Duration {
	if d == history.Forever || t > history.Forever-d {
		return history.Forever
	}
	return t + d
}

// Page is everything known about the lock of one page.
type Page struct {
	Rules
	Holds   []Hold
	Calls   []Call   // in any order
	Windows []Window // in any order
}
