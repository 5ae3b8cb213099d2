package measure

import (
	"slices"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// keptOutages limits the number of outages in the result. If there are more, the shortest are dropped.
const keptOutages = 64

// Availability returns the outages within the measurement. In an outage, workers asked for the lock of a page, and
// none of them got it for a long time. The argument roles has the role changes of servers, which divide a recovery
// into parts. The result is nil if no worker asked for a lock.
func (m *Meter) Availability(roles []results.RoleChange) *results.Availability {
	if m.outages == nil || !m.outages.asked {
		return nil
	}
	least := m.outages.handOff()
	a := &results.Availability{Least: int64(least), Outages: []results.Outage{}}
	gaps := m.outages.all(m.workers, m.to)
	for i := range gaps {
		g := &gaps[i]
		g.open = g.open || g.to > m.to
		g.from, g.to, g.answered = max(g.from, m.from), min(g.to, m.to), min(g.answered, m.to)
	}
	gaps = slices.DeleteFunc(gaps, func(g gap) bool { return g.to-g.from < least })
	slices.SortFunc(gaps, func(a, b gap) int { return int(a.from - b.from) })
	for len(gaps) > 0 {
		end, n := gaps[0].to, 1
		for ; n < len(gaps) && gaps[n].from <= end; n++ {
			end = max(end, gaps[n].to)
		}
		o := m.outage(gaps[:n], end, roles)
		a.Count, a.Total, a.Longest = a.Count+1, a.Total+o.To-o.From, max(a.Longest, o.To-o.From)
		if a.Recovery == nil || *a.Recovery < o.Recovery {
			a.Recovery = &o.Recovery
		}
		a.Outages = append(a.Outages, *o)
		gaps = gaps[n:]
	}
	if a.Recovery == nil && slices.ContainsFunc(m.faults, func(w results.FaultWindow) bool { return !w.Failed }) {
		a.Recovery = new(int64) // the fault caused no outage
	}
	if len(a.Outages) > keptOutages {
		slices.SortFunc(a.Outages, func(a, b results.Outage) int { return int(b.To - b.From - (a.To - a.From)) })
		a.Outages = a.Outages[:keptOutages]
		slices.SortFunc(a.Outages, func(a, b results.Outage) int { return int(a.From - b.From) })
	}
	return a
}

func (m *Meter) outage(gaps []gap, end time.Duration, roles []results.RoleChange) *results.Outage {
	o := &results.Outage{From: int64(gaps[0].from), To: int64(end), Failed: map[string]int64{}, Parts: []results.Part{}}
	longest, pages := &gaps[0], map[int32]bool{}
	for i := range gaps {
		g := &gaps[i]
		pages[g.key] = true
		for f, n := range g.failed {
			o.Failed[f.String()] += n
		}
		if g.to-g.from > longest.to-longest.from {
			longest = g
		}
		if o.Open = o.Open || g.open; g.resurrected(m.outages.handOff()) {
			o.Resurrected++
		}
	}
	o.Pages, o.Longest = len(pages), int64(longest.to-longest.from)
	begin, fault := gaps[0].from, m.faultOf(gaps, end)
	if fault != nil {
		begin, o.Fault = max(min(begin, fault.Injected), fault.From), &fault.Fault
	}
	o.Recovery = int64(end - begin)
	t := timeline{begin: begin, end: end, answered: min(longest.answered, end), open: o.Open, fault: fault,
		roles: roles}
	o.Parts = t.parts()
	return o
}

// resurrected tells whether a lock came back after its release: for at least the given time, servers replied that it
// is held. It returns false if a failed try may have taken the lock, since its outcome is unknown or the lock gave it
// up.
func (g *gap) resurrected(least time.Duration) bool {
	for f := range g.failed {
		if f.kind == history.Acquire && (f.outcome == history.Unknown || f.reason == history.Quorum ||
			f.reason == history.Expired) {
			return false
		}
	}
	return g.again > 0 && g.to-max(g.again, g.answered) >= least
}

// faultOf returns the fault that explains an outage: the latest one in force when the outage began or, without one,
// the first that was injected during the outage. It returns nil if there was neither. Once the page was served again,
// the fault explains no later outage of the page.
func (m *Meter) faultOf(gaps []gap, to time.Duration) (of *results.FaultWindow) {
	from := gaps[0].from
	for i := range m.faults {
		w := &m.faults[i]
		began := w.From <= from && from <= w.To
		owns := slices.ContainsFunc(gaps, func(g gap) bool { return g.served <= w.Injected })
		if !w.Failed && owns && (began || of == nil && from <= w.From && w.From < to) {
			of = w
		}
	}
	return of
}

// leastPart is the shortest duration of a part of a recovery. A shorter part is added to the part after it.
const leastPart = time.Millisecond

// timeline has the known times within a recovery.
type timeline struct {
	begin, end time.Duration
	answered   time.Duration // from this time, servers reply that another worker has the lock
	open       bool          // the outage lasts until the end of the measurement
	fault      *results.FaultWindow
	roles      []results.RoleChange
}

// parts divides the recovery at its known times, such as that of a promotion.
func (t *timeline) parts() (all []results.Part) {
	at := t.begin
	upTo := func(to time.Duration, name results.PartName) {
		if to = min(to, t.end); to-at >= leastPart || to > at && to == t.end {
			all = append(all, results.Part{Name: name, Took: int64(to - at)})
			at = to
		}
	}
	healing := history.Forever
	if t.fault != nil {
		healing = t.fault.Healing
	}
	noticed, promoted := t.first(results.NoticedDown), t.first(results.BecamePrimary)
	switch {
	case promoted != nil:
		// If a server grants locks, its promotion is over, even if the suite noticed the promotion later.
		primary := max(time.Duration(promoted.After), min(time.Duration(promoted.By), t.answered))
		if name := results.Replacing; noticed == nil || time.Duration(noticed.By) >= primary {
			upTo(primary, name)
		} else {
			upTo(time.Duration(noticed.By), results.Noticing)
			upTo(primary, results.Electing)
		}
		upTo(max(primary, t.answered), results.Connecting)
	case healing < t.end:
		upTo(healing, results.Down)
		upTo(max(healing, t.answered), results.Connecting)
	case t.open && t.fault != nil:
		upTo(t.answered, results.Down)
	default:
		upTo(t.answered, results.Unexplained)
	}
	upTo(t.end, results.LeaseLeft)
	return all
}

// The method first returns the first role change of the kind what within the recovery; nil if none was seen.
func (t *timeline) first(what results.Became) *results.RoleChange {
	for i := range t.roles {
		if r := &t.roles[i]; r.Became == what && time.Duration(r.By) > t.begin && time.Duration(r.After) < t.answered {
			return r
		}
	}
	return nil
}
