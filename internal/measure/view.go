package measure

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hammerlock/history"
)

const (
	keptLanes   = 64                     // largest number of workers in a snapshot
	overlapKept = 10 * time.Second       // for this long after an overlap, a worker stays in the snapshot
	aroundLanes = 12                     // largest number of workers in the picture of an event
	aroundAfter = 750 * time.Millisecond // what is shown of the time before an event, and after it
	aroundCells = int(2 * aroundAfter / StripStep)
)

// Snapshot returns the state of the run at the given time. The argument s has facts that operations do not show; nil
// = unknown.
func (v *Viewer) Snapshot(now time.Duration, stage string, s *Surroundings) *Snapshot {
	v.violations()
	v.roll(now)
	v.acquire.roll(now)
	v.answer.roll(now)
	m := v.meter
	r := &Snapshot{Live: m.Live(now), Head: v.head, Stage: stage, From: m.from, To: m.to, Dropped: v.events.dropped}
	if s != nil {
		r.Nodes, r.Cuts, r.Agents, r.Cost = s.Nodes, s.Cuts, s.Agents, s.Cost
		if s.Measured {
			r.Generator = m.judge(s.Usage)
		}
	}
	r.Roles = slices.Clone(v.roles)
	r.Latency = []LatencyRow{
		{"acquire", v.acquire.now, v.acquire.ten, m.acquire.quantiles()},
		{"response", v.answer.now, v.answer.ten, m.response.quantiles()},
	}
	if v.head.Unseen {
		r.Latency = append(r.Latency[1:], LatencyRow{Name: "request", Run: m.tries.quantiles()})
	}
	r.Random = Quantiles{Count: m.waits.random.count, P50: m.waits.randomWaiter(0.5), P99: m.waits.randomWaiter(0.99)}
	r.Acquired, r.Answered = v.acquire.whole, v.answer.whole
	r.Fairness = m.fairness()
	r.Injected = v.events.injected
	v.longest(r, now)
	v.lanes(r, now)
	v.around(now)
	r.Events = append(slices.Clone(v.events.list), v.begun.events()...)
	slices.SortStableFunc(r.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == FaultEvent && e.To == 0 {
			r.Active = append(r.Active, e.Text)
		}
	}
	v.minute(r)
	n, found := v.stream.Violations()
	r.Safety = Safety{Violations: n, Excludes: v.header.Claims.Excludes, SafeUpTo: v.stream.SafeUpTo()}
	if len(found) > 0 {
		r.Safety.First = found[0].Text
	}
	return r
}

// The method violations adds an event for each violation that was proved since the last call.
func (v *Viewer) violations() {
	count, all := v.stream.Violations()
	for _, s := range all[v.seen:] {
		v.events.add(Event{Kind: ViolationEvent, At: s.At, Text: s.Text, Detail: []string{
			"what: " + s.Checker, "happened " + at(s.At) + ", proved " + at(s.Seen),
			fmt.Sprintf("operations %s of w%02d and %s of w%02d", s.Ops[0], s.Workers[0], s.Ops[1], s.Workers[1]),
		}})
	}
	v.seen = len(all)
	if more := count - v.counted - int64(len(all)); more > 0 {
		v.counted += more
		v.events.add(Event{Kind: ViolationEvent, At: v.stream.SafeUpTo(), Text: "more violations"})
		v.events.list[len(v.events.list)-1].Count += more - 1
	}
}

// The method longest finds the worker with the longest wait in progress, and sets the fields of r about it. It also
// raises the longest waits in r.Fairness if a wait in progress is longer.
func (v *Viewer) longest(r *Snapshot, now time.Duration) {
	r.LongestBy = -1
	for i := range v.meter.workers {
		w := &v.meter.workers[i]
		if !w.waiting {
			continue
		}
		waited := now - w.first
		if waited > r.Longest {
			r.Longest, r.LongestBy = waited, i
		}
		if i < len(r.Fairness.Workers) {
			known := &r.Fairness.Workers[i].Longest
			*known = max(*known, int64(waited))
		}
		if r.Fairness.Worst.Worker == i {
			r.Fairness.Worst.Longest = max(r.Fairness.Worst.Longest, int64(waited))
		}
	}
}

func (v *Viewer) minute(r *Snapshot) {
	for n := max(v.second-int64(len(v.seconds))+1, 0); n <= v.second; n++ {
		s := v.seconds[n%int64(len(v.seconds))]
		s.Fault = v.events.faultIn(s.At, s.At+time.Second)
		r.Seconds = append(r.Seconds, s)
	}
}

// The method lanes selects the workers whose strips are shown. If there are too many workers, it selects the most
// interesting.
func (v *Viewer) lanes(r *Snapshot, now time.Duration) {
	all := make([]Strip, len(v.strips.workers))
	for i := range all {
		all[i] = v.strips.workers[i].now(i, moment{now, min(now, v.known), v.stopped[i].Load()})
	}
	r.Hidden = max(len(all)-keptLanes, 0)
	r.Lanes = heaviest(all, keptLanes, func(s *Strip) int64 {
		if o := v.strips.workers[s.Worker].overlap; o > 0 && now-o < overlapKept {
			return int64(history.Forever)
		}
		return interest(s)
	})
	end := int64(now / StripStep)
	for i := range r.Lanes {
		l := &r.Lanes[i]
		l.Cells = v.strips.workers[l.Worker].last(StripCells, end)
		for k := len(l.Cells) - 1; k >= 0 && time.Duration(end-int64(len(l.Cells)-1-k))*StripStep >= v.known; k-- {
			if l.Cells[k]&Stopped == 0 {
				l.Cells[k] = NotKnown
			}
		}
	}
	r.LanesEnd = time.Duration(end+1) * StripStep
}

// The method around completes recent events: it adds what the workers did around the time of the event. It does so
// when enough time has passed after the event.
func (v *Viewer) around(now time.Duration) {
	for i := len(v.events.list) - 1; i >= 0 && now-v.events.list[i].At < 5*time.Second; i-- {
		e := &v.events.list[i]
		if e.Around != nil || now < e.At+aroundAfter {
			continue
		}
		end := int64((e.At + aroundAfter) / StripStep)
		e.Begin = time.Duration(end-int64(aroundCells)+1) * StripStep
		all := make([]Strip, len(v.strips.workers))
		for w := range all {
			s := &v.strips.workers[w]
			all[w] = Strip{Worker: w, Page: s.hold.Key, Cells: s.last(aroundCells, end)}
		}
		e.Around = heaviest(all, aroundLanes, busyness)
	}
}

// heaviest returns the n strips with the greatest weights, in the order of workers.
func heaviest(all []Strip, n int, weight func(*Strip) int64) []Strip {
	if len(all) <= n {
		return all
	}
	slices.SortStableFunc(all, func(a, b Strip) int { return cmp.Compare(weight(&b), weight(&a)) })
	slices.SortFunc(all[:n], func(a, b Strip) int { return cmp.Compare(a.Worker, b.Worker) })
	return all[:n]
}

// interest returns the weight of a worker for the selection in lanes. Stopped and late workers have the greatest,
// then holders, then waiters, whose weight grows with their wait.
func interest(s *Strip) int64 {
	switch {
	case s.Mode&(Stopped|Expired) != 0:
		return int64(history.Forever)
	case s.Mode&(Held|Orphaned) != 0:
		return int64(history.Forever) - 1
	default:
		return int64(s.Since)
	}
}

// busyness returns the weight of a strip for the picture of an event.
func busyness(s *Strip) (n int64) {
	for _, c := range s.Cells {
		switch {
		case c&Overlap != 0:
			n += 1000
		case c&(Stopped|Expired|Orphaned) != 0:
			n += 100
		case c&Held != 0:
			n++
		}
	}
	return n
}
