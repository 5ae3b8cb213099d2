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

// Availability lists the outages of a run: times in which workers requested a lock and none got it. A page is available
// while a living worker holds its lock. It is unavailable from the first request that waits until the next grant. A
// time that is shorter than Least is a hand-off and no outage.
type Availability struct {
	Least   int64 `json:"least_ns"`
	Total   int64 `json:"total_ns"` // time in which at least one page was unavailable
	Longest int64 `json:"longest_ns"`
	// Recovery is the longest recovery; null if there was neither an outage nor a fault.
	Recovery *int64 `json:"recovery_ns"`
	Count    int64  `json:"count"`
	// Outages lists the longest outages, ordered by their beginning.
	Outages []Outage `json:"outages"`
}

// Outage is a time in which at least one page was unavailable at every moment.
type Outage struct {
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	Open bool  `json:"open,omitempty"` // the measurement ended before the outage did
	// Fault is the number of the fault that was active at the beginning, or null. It is an index in Run.Faults;
	// faults by users have the numbers after them.
	Fault *int64 `json:"fault"`
	// Recovery is the time from the injection of the fault to the end of the outage. Without a fault, it is the time
	// from the first request that waited.
	Recovery int64 `json:"recovery_ns"`
	// Longest is the longest time for which any single page was unavailable. It is shorter than the outage if pages
	// became unavailable one after another.
	Longest int64 `json:"longest_page_ns"`
	Pages   int   `json:"pages"` // number of pages that were unavailable
	// parts of Recovery, to which they add up
	Parts  []Part           `json:"parts"`
	Failed map[string]int64 `json:"failed"` // number of calls that failed during the outage, by "kind outcome reason"
	// Resurrected is the number of pages whose lock came back: its release was acknowledged, and later the lock was
	// held again on the servers.
	Resurrected int `json:"resurrected,omitempty"`
}

type Part struct {
	Name PartName `json:"part"`
	Took int64    `json:"took_ns"`
}

// PartName says what happened in a part of a recovery.
type PartName string

// The parts in their order of time.
const (
	Down PartName = "down" // until the broken server works again
	// until sentinels, or the cluster nodes, agree that the primary is down
	Noticing   PartName = "detection"
	Electing   PartName = "election"               // from that agreement until another server is primary
	Replacing  PartName = "detection and election" // both, if the time of the agreement is unknown
	Connecting PartName = "reconnecting"           // until the client gets a reply from a server that can grant
	// LeaseLeft: the servers say that the lock is held, but no living worker holds it.
	LeaseLeft   PartName = "a lease not given back"
	Unexplained PartName = "unserved" // neither a fault nor a role change explains it
)

// RoleChange is a change of a server's role during the run.
type RoleChange struct {
	Node   string `json:"node"`
	Became Became `json:"became"`
	After  int64  `json:"after_ns"` // last time at which the change was not visible yet
	By     int64  `json:"by_ns"`    // first time at which the change was visible
	Text   string `json:"text"`
}

// Became says what a server has become, or what it thinks about another server.
type Became string

// NoticedDown means that a sentinel, or a cluster node, has noticed that a primary is down.
const (
	BecamePrimary Became = "primary"
	BecameReplica Became = "replica"
	NoticedDown   Became = "noticed"
)

func clipped(ns int64) string { return human.Duration(time.Duration(ns)) }

// AvailabilityText describes the outages; empty if there is nothing to say.
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

// RecoveryText describes the longest recovery and its parts; empty if there was none, or if no part has an
// explanation.
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

// RecoveryText describes the recovery, with the name of its fault.
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

// FailedText lists the calls that failed during the outage.
func (o *Outage) FailedText() string {
	return human.List(human.Names(slices.Sorted(maps.Keys(o.Failed)), func(what string) string {
		return human.Count(o.Failed[what]) + " " + what
	}))
}

// slowest returns the outage with the longest recovery; nil if there is none.
func (a *Availability) slowest() *Outage {
	if a == nil || len(a.Outages) == 0 {
		return nil
	}
	o := slices.MaxFunc(a.Outages, func(x, y Outage) int { return cmp.Compare(x.Recovery, y.Recovery) })
	return &o
}

// PartsText lists the parts of a recovery.
func (o *Outage) PartsText() string {
	return strings.Join(human.Names(o.Parts, func(p Part) string { return string(p.Name) + " " + clipped(p.Took) }),
		", ")
}

// unavailable makes a metric of one of the numbers in Availability. The metric is a lower bound if the run ended during
// an outage.
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

// recovered is the metric of the longest recovery.
func recovered(r *Run) Reading {
	if r.Availability == nil || r.Availability.Recovery == nil {
		return Reading{}
	}
	return unavailable(func(a *Availability) int64 { return *a.Recovery })(r)
}
