package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
)

// Told says how soon holders learned that they had lost the lock. A hold is lost if another worker was granted the
// lock, or if a release, an extension or the lock itself reported the loss. Times count from the loss: the earliest of
// the other grant, the fault that made servers forget the hold, and the end of the lease by the last renewal. Pauses of
// the holder's process are left out.
type Told struct {
	Count int64 `json:"count"` // number of lost holds whose workers lived
	Never int64 `json:"never"` // number of these whose holders learned nothing until they released
	// Unknown is the number of lost holds with an unknown time of loss: the lock does not say when it renewed.
	Unknown int64 `json:"unknown,omitempty"`
	// P50 is the median time until holders were told, by a signal of the lock or by a failed extension; null if it
	// is unknown.
	P50 *int64 `json:"p50_ns"`
	P99 *int64 `json:"p99_ns"` // null if fewer than a hundred were told
	Max *int64 `json:"max_ns"`
	// Inside is the longest time for which a holder that learned nothing went on after the loss.
	Inside int64 `json:"inside_ns,omitempty"`
	Lease  int64 `json:"lease_ns"` // longest lease that was requested

	after []int64 // times until holders were told, sorted; not stored in files
}

// Add adds the holds of another run.
func (t *Told) Add(o *Told) {
	t.Count, t.Never, t.Unknown = t.Count+o.Count, t.Never+o.Never, t.Unknown+o.Unknown
	t.Inside, t.Lease = max(t.Inside, o.Inside), max(t.Lease, o.Lease)
	if o.Max != nil && (t.Max == nil || *o.Max > *t.Max) {
		t.Max = o.Max
	}
	t.after = slices.Concat(t.after, o.after)
	slices.Sort(t.after)
	t.quantiles()
}

// quantiles computes the quantiles. They are nil if the times of some holders are missing, because files do not store
// these times.
func (t *Told) quantiles() {
	t.P50, t.P99 = nil, nil
	told := len(t.after)
	if told == 0 || int64(told) < t.Count-t.Never-t.Unknown {
		return
	}
	if t.P50 = &t.after[(told-1)/2]; told >= 100 {
		t.P99 = &t.after[(told*99+99)/100-1]
	}
}

// Text says how soon holders were told, in seconds and in leases.
func (t *Told) Text() string {
	if t == nil || t.Count == 0 {
		return ""
	}
	text := human.Quantity(t.Count, "hold") + " lost under a living holder: "
	if t.Max == nil {
		text += "none told in a known time"
	} else {
		text += "told after "
		for _, q := range []struct {
			of   *int64
			name string
		}{{t.P50, "(p50)"}, {t.P99, "(p99)"}} {
			if q.of != nil {
				text += fmt.Sprintf("%s %s, ", human.Duration(time.Duration(*q.of)), q.name)
			}
		}
		text += human.Duration(time.Duration(*t.Max)) + " at most"
		if t.Lease > 0 {
			text += fmt.Sprintf(" (%s leases)", human.Number(float64(*t.Max)/float64(t.Lease)))
		}
	}
	if text += fmt.Sprintf(", %d never", t.Never); t.Never > 0 {
		text += fmt.Sprintf(", which went on for up to %s", human.Duration(time.Duration(t.Inside)))
	}
	if t.Unknown > 0 {
		text += fmt.Sprintf(", %d lost at an unknown time", t.Unknown)
	}
	return text
}

// Extent says how much a run tested: its maxima, and the kinds of trouble in it. A passing verdict says nothing about a
// longer lease, a longer wait, or an error that did not occur.
type Extent struct {
	Lease time.Duration `json:"longest_lease_ns"` // longest lease that was requested; 0 = none
	Hold  time.Duration `json:"longest_hold_ns"`  // longest hold, until it was released or no longer relied on
	// largest number of renewals of one hold: successful extensions, or leases that fit into the hold of a lock
	// that renews
	Renewals  int           `json:"most_renewals"`
	Wait      time.Duration `json:"longest_wait_ns"` // longest wait, whether the lock was granted or not
	Workers   int           `json:"workers"`
	Processes int           `json:"processes"`
	Keys      int           `json:"keys"`
	// reasons with which calls of the lock, or visits to a service, ended in errors
	Errors []string `json:"errors"`
	Faults []string `json:"faults"` // faults that coincided with a holder or waiter
	Claims []string `json:"claims"` // claims of the lock
	// the lock's program did not read the wall clock that was set for it
	ClockUnread bool `json:"clock_unread,omitempty"`
}

// Add joins this extent with that of another run: it takes the greater numbers and all names.
func (t *Extent) Add(o *Extent) {
	t.Lease, t.Hold, t.Wait = max(t.Lease, o.Lease), max(t.Hold, o.Hold), max(t.Wait, o.Wait)
	t.Renewals, t.Workers = max(t.Renewals, o.Renewals), max(t.Workers, o.Workers)
	t.Processes, t.Keys = max(t.Processes, o.Processes), max(t.Keys, o.Keys)
	t.ClockUnread = t.ClockUnread || o.ClockUnread
	join := func(a, b []string) []string {
		a = slices.Concat([]string{}, a, b)
		slices.Sort(a)
		return slices.Compact(a)
	}
	t.Errors, t.Faults, t.Claims = join(t.Errors, o.Errors), join(t.Faults, o.Faults), join(t.Claims, o.Claims)
}

// Text says in one sentence how much was tested.
func (t *Extent) Text() string {
	var most []string
	longest := func(what string, d time.Duration) {
		if d > 0 {
			most = append(most, what+" up to "+human.Duration(d))
		}
	}
	longest("leases", t.Lease)
	longest("holds", t.Hold)
	if t.Renewals > 0 {
		most = append(most, human.Quantity(t.Renewals, "renewal")+" of a hold")
	}
	longest("waits", t.Wait)
	most = append(most, human.Quantity(t.Workers, "worker"), human.Quantity(t.Keys, "key"))
	if t.Processes > 1 {
		most = append(most, fmt.Sprintf("%d processes", t.Processes))
	}
	names := func(what string, all []string) string {
		if len(all) == 0 {
			return "no " + what
		}
		return what + " " + strings.Join(all, ", ")
	}
	text := strings.Join(most, ", ") + "; " + names("errors", t.Errors) + "; " + names("faults", t.Faults)
	if t.ClockUnread {
		text += "; not the wall clock, which the program did not read"
	}
	return text
}
