package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Availability says when workers asked for a lock and none was served. A page is served while a living worker holds its
// lock. It is unavailable from the first ask that is not served until the next grant. Shorter times than Least are
// hand-offs.
type Availability struct {
	Least   int64 `json:"least_ns"`
	Total   int64 `json:"total_ns"` // some page was unavailable
	Longest int64 `json:"longest_ns"`
	// Recovery is that of the outage that took longest to recover from; null if there was neither an outage nor a
	// fault.
	Recovery *int64 `json:"recovery_ns"`
	Count    int64  `json:"count"`
	// Outages are in the order in which they began: of many, the longest.
	Outages []Outage `json:"outages"`
}

// Outage is a time in which some page was unavailable all the time.
type Outage struct {
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	Open bool  `json:"open,omitempty"` // the measurement ended before it did
	// Fault is the number of the fault that was in force when it began, in Run.Faults and beyond them those by hand;
	// null if none was.
	Fault *int64 `json:"fault"`
	// Recovery is from the fault's injection to the end; without a fault, from the first ask.
	Recovery int64 `json:"recovery_ns"`
	// Longest is for how long the page was unavailable that was so for longest: where pages take turns, an outage is
	// longer.
	Longest int64 `json:"longest_page_ns"`
	Pages   int   `json:"pages"` // that were unavailable
	// of the recovery, of the page that was unavailable for longest; they add up to it
	Parts  []Part           `json:"parts"`
	Failed map[string]int64 `json:"failed"` // calls that failed meanwhile, by "kind outcome reason"
	// Resurrected pages were given back before, as the lock acknowledged, and were then another's by the answers of the
	// servers.
	Resurrected int `json:"resurrected,omitempty"`
}

// Part is a part of a recovery.
type Part struct {
	Name PartName `json:"part"`
	Took int64    `json:"took_ns"`
}

// PartName says what a part of a recovery is spent on.
type PartName string

// The parts, in the order in which they follow.
const (
	Down       PartName = "down"                   // until what was broken is mended
	Noticing   PartName = "detection"              // until sentinels, or the cluster, agree that the primary is down
	Electing   PartName = "election"               // from then on until another server is primary
	Replacing  PartName = "detection and election" // where it is not known when the servers agreed
	Connecting PartName = "reconnecting"           // until the client is answered by a server that can grant
	// the servers answer that the lock is held, and no living worker holds it
	LeaseLeft   PartName = "a lease not given back"
	Unexplained PartName = "unserved" // no fault, nor a change of roles, tells
)

// RoleChange is what a server became while the run went on.
type RoleChange struct {
	Node   string `json:"node"`
	Became Became `json:"became"`
	After  int64  `json:"after_ns"` // it was not yet
	By     int64  `json:"by_ns"`    // it was, as was seen then
	Text   string `json:"text"`
}

// Became is what servers become, or say of others.
type Became string

// Their effects. NoticedDown is of a sentinel, or of a node of a cluster: by then it knew that a primary is down.
const (
	BecamePrimary Became = "primary"
	BecameReplica Became = "replica"
	NoticedDown   Became = "noticed"
)

func clipped(ns int64) string { return human.Duration(time.Duration(ns)) }

// AvailabilityText says how long no worker was served; empty if nothing is to be told.
func (r *Run) AvailabilityText() string {
	a := r.Availability
	if a == nil || a.Count == 0 && len(r.Windows) == 0 {
		return ""
	}
	if a.Count == 0 {
		return fmt.Sprintf("no page was unavailable for %s or more", clipped(a.Least))
	}
	all := Outage{Failed: map[string]int64{}}
	for i := range a.Outages {
		for what, n := range a.Outages[i].Failed {
			all.Failed[what] += n
		}
	}
	return fmt.Sprintf("%s, %s in all, the longest %s; failed meanwhile: %s", human.Quantity(a.Count, "outage"),
		clipped(a.Total),
		clipped(a.Longest), all.FailedText())
}

// RecoveryText says how long the longest recovery took, and what it was spent on; empty if there was none, or nothing
// is known to have been broken.
func (r *Run) RecoveryText() string {
	o := r.Availability.slowest()
	if o == nil || o.Fault == nil && o.PartsText() == string(Unexplained)+" "+clipped(o.Recovery) {
		return ""
	}
	text := o.RecoveryText(r.Faults)
	if o.Pages > 1 {
		text += fmt.Sprintf(" (%d pages, each for %s at most)", o.Pages, clipped(o.Longest))
	}
	return text + ": " + o.PartsText()
}

// RecoveryText says how long the recovery took, and from what, by the names of the run's faults.
func (o *Outage) RecoveryText(faults []string) string {
	text := clipped(o.Recovery)
	if o.Open {
		text = "not within " + text
	}
	switch {
	case o.Fault == nil:
	case *o.Fault < int64(len(faults)):
		text += " after " + faults[*o.Fault]
	default:
		text += " after a fault by hand"
	}
	return text
}

// FailedText says which calls failed meanwhile.
func (o *Outage) FailedText() string {
	return human.List(human.Names(slices.Sorted(maps.Keys(o.Failed)), func(what string) string {
		return human.Count(o.Failed[what]) + " " + what
	}))
}

// slowest is the outage that took longest to recover from; nil if there is none.
func (a *Availability) slowest() *Outage {
	if a == nil || len(a.Outages) == 0 {
		return nil
	}
	o := slices.MaxFunc(a.Outages, func(x, y Outage) int { return cmp.Compare(x.Recovery, y.Recovery) })
	return &o
}

// PartsText says what a recovery was spent on.
func (o *Outage) PartsText() string {
	return strings.Join(human.Names(o.Parts, func(p Part) string { return string(p.Name) + " " + clipped(p.Took) }),
		", ")
}

// unavailable is a reading of how available the lock was.
func unavailable(of func(*Availability) int64) func(*Run) Reading {
	return func(r *Run) (x Reading) {
		if a := r.Availability; a != nil {
			x = Reading{Value: float64(of(a)), Support: Supported}
			if slices.ContainsFunc(a.Outages, func(o Outage) bool { return o.Open }) {
				x.Support = AtLeast
			}
		}
		return x
	}
}

// recovered is a reading of the longest recovery.
func recovered(r *Run) Reading {
	if r.Availability == nil || r.Availability.Recovery == nil {
		return Reading{}
	}
	return unavailable(func(a *Availability) int64 { return *a.Recovery })(r)
}
