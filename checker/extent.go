package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

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

// errorReasons are the reasons of calls that ended in an error, or had no answer.
var errorReasons = []history.Reason{history.Unreachable, history.Refused, history.Timeout, history.Dropped,
	history.Other}

// extent computes what the history tested. The argument met says which faults coincided with a holder or waiter.
func (c *Case) extent(met []bool) *Extent {
	t := &Extent{Lease: c.ttl, Workers: c.workers, Keys: c.keys, Errors: []string{}, Faults: []string{},
		Claims: []string{}}
	for _, works := range c.working {
		if works {
			t.Processes++
		}
	}
	if m := c.Measured; m != nil && m.Driver != nil {
		t.ClockUnread = m.Driver.ClockUnread
	}
	var end time.Duration
	var seen [history.Other + 1]bool
	for i := range c.Ops {
		op := &c.Ops[i]
		end = max(end, op.Latest())
		if op.Kind == history.Acquire || op.Kind == history.Extend || op.Kind == history.Release ||
			c.Header.Service && op.Kind == history.Store {
			seen[op.Reason] = true
		}
	}
	for _, r := range errorReasons {
		if seen[r] {
			t.Errors = append(t.Errors, r.String())
		}
	}
	c.waits(func(w *wait) { t.Wait = max(t.Wait, min(w.stop, end)-w.start) })
	for i := range c.holds {
		if h := &c.holds[i]; h.Outcome == history.OK {
			held := min(h.trusted(), end) - h.Return
			t.Hold = max(t.Hold, held)
			extended := 0
			for _, x := range c.extends(h) {
				if c.Ops[x].Outcome == history.OK {
					extended++
				}
			}
			if c.Claims.Renews && h.TTL > 0 {
				extended = max(extended, int(held/h.TTL))
			}
			t.Renewals = max(t.Renewals, extended)
		}
	}
	for i, f := range c.Faults {
		if met[i] && !slices.Contains(t.Faults, f.Name) {
			t.Faults = append(t.Faults, f.Name)
		}
	}
	for i := range history.AllClaims {
		if k := &history.AllClaims[i]; len(k.Judges) > 0 && k.Of(&c.Claims) && !c.Header.Service {
			t.Claims = append(t.Claims, k.Name)
		}
	}
	return t
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
