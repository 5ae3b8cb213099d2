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

// Availability lists the outages of a run, in which workers wait for a lock and none gets it. A page, the data that
// one lock guards, is available while a living worker holds its lock. It is unavailable from the first waiting
// request to the next grant. If this takes less than Least, it is a normal hand-off and no outage.
type Availability struct {
	Least   int64 `json:"least_ns"`
	Total   int64 `json:"total_ns"` // time in which at least one page was unavailable
	Longest int64 `json:"longest_ns"`
	// Recovery is the longest Recovery of an outage; null if there was neither an outage nor a fault.
	Recovery *int64 `json:"recovery_ns"`
	Count    int64  `json:"count"`
	// Outages lists the longest outages, ordered by their beginning.
	Outages []Outage `json:"outages"`
}

// Outage is a period in which at least one page is unavailable all the time.
type Outage struct {
	From int64 `json:"from_ns"`
	To   int64 `json:"to_ns"`
	Open bool  `json:"open,omitempty"` // the measurement ended before the outage did
	// Fault is the number of the fault that explains the outage; null = none does. It was active when the outage
	// began, or it is the first one that was injected during the outage. Numbers below len(Run.Faults) are indices
	// in Run.Faults. Other numbers are faults that a user injected during the run.
	Fault *int64 `json:"fault"`
	// Recovery is the time from the injection of the fault to the end of the outage. Without a fault it is the time
	// from the first waiting request to the end.
	Recovery int64 `json:"recovery_ns"`
	// Longest is the longest time that one page was unavailable. The outage is longer if pages became unavailable
	// one after another.
	Longest int64 `json:"longest_page_ns"`
	Pages   int   `json:"pages"` // number of pages that were unavailable
	// Recovery is the sum of these parts.
	Parts  []Part           `json:"parts"`
	Failed map[string]int64 `json:"failed"` // number of calls that failed during the outage, by "kind outcome reason"
	// Resurrected is the number of pages whose lock came back after its release: the servers acknowledged the
	// release, but later they replied that the lock is held again.
	Resurrected int `json:"resurrected,omitempty"`
}

type Part struct {
	Name PartName `json:"part"`
	Took int64    `json:"took_ns"`
}

// PartName names a part of a recovery by what the workers waited for.
type PartName string

// The parts of a recovery, in the order of time. Each part lasts until the event in its comment.
const (
	Down PartName = "down" // the broken server works again
	// sentinels, or the cluster nodes, agree that the primary is down
	Noticing   PartName = "detection"
	Electing   PartName = "election"               // after this agreement, another server is primary
	Replacing  PartName = "detection and election" // both, if the time of the agreement is unknown
	Connecting PartName = "reconnecting"           // the client gets a reply from a server that can grant
	// LeaseLeft: the servers reply that the lock is held, but no living worker holds it; this part ends with a grant.
	LeaseLeft   PartName = "a lease not given back"
	Unexplained PartName = "unserved" // no fault and no role change explains this part
)

// RoleChange is a change of a server's role during the run.
type RoleChange struct {
	Node   string `json:"node"`
	Became Became `json:"became"`
	After  int64  `json:"after_ns"` // last time at which the change was not visible yet
	By     int64  `json:"by_ns"`    // first time at which the change was visible
	Text   string `json:"text"`
}

// Became is the new role of a server, or NoticedDown.
type Became string

// NoticedDown means that a sentinel or a cluster node considers a primary down.
const (
	BecamePrimary Became = "primary"
	BecameReplica Became = "replica"
	NoticedDown   Became = "noticed"
)

func clipped(ns int64) string { return human.Duration(time.Duration(ns)) }

// AvailabilityText describes the outages. It is empty if the run had neither outages nor faults, or did not measure
// them.
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

// RecoveryText describes the longest recovery and its parts. It is empty if there was no outage. It is also empty if
// the outage followed no fault and all of it is unexplained.
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

// RecoveryText describes the recovery, and names the fault; faults are the names in Run.Faults.
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

// slowest returns the outage with the longest recovery; nil = no outage.
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

// unavailable makes a metric from a number in Availability; its argument selects this number. The metric is only a
// lower bound if an outage had not ended at the end of the run.
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

// recovered is the metric for the longest recovery.
func recovered(r *Run) Reading {
	if r.Availability == nil || r.Availability.Recovery == nil {
		return Reading{}
	}
	return unavailable(func(a *Availability) int64 { return *a.Recovery })(r)
}
