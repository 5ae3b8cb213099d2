package results

import (
	"cmp"
	"slices"
	"time"

	"hammerlock/history"
)

// keptLanes bounds how many workers have a lane in a snapshot.
const keptLanes = 64

// Snapshot describes the run at the given time, with what else was seen of it.
func (v *Viewer) Snapshot(now time.Duration, phase string, s *Surroundings) *Snapshot {
	v.sightings()
	v.roll(now)
	v.acquire.roll(now)
	v.answer.roll(now)
	m := v.meter
	r := &Snapshot{Live: m.Live(now), Head: v.head, Phase: phase, From: m.from, To: m.to, Dropped: v.dropped}
	if s != nil {
		r.Nodes, r.Cuts, r.Cost = s.Nodes, s.Cuts, s.Cost
		if s.Loaded {
			r.Generator = m.judge(s.Load)
		}
	}
	r.Latency = []LatencyRow{
		{"acquire", v.acquire.now, v.acquire.ten, m.Acquire.quantiles()},
		{"response", v.answer.now, v.answer.ten, m.Response.quantiles()},
	}
	r.Random = Quantiles{Count: m.Waits.random.count, P50: m.Waits.RandomWaiter(0.5), P99: m.Waits.RandomWaiter(0.99)}
	v.longest(r, now)
	v.lanes(r, now)
	r.Fairness = m.fairness()
	r.Shares = make([]int64, len(m.workers))
	for i := range m.workers {
		r.Shares[i] = m.workers[i].finish
	}
	v.around(now)
	r.Events = slices.Clone(v.events)
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

func (v *Viewer) longest(r *Snapshot, now time.Duration) {
	r.LongestBy = -1
	for i := range v.meter.workers {
		if w := &v.meter.workers[i]; w.waiting && now-w.first > r.Longest {
			r.Longest, r.LongestBy = now-w.first, i
		}
	}
}

// minute lists the seconds of the last minute, and which of them had a fault.
func (v *Viewer) minute(r *Snapshot) {
	for n := max(v.second-int64(len(v.seconds))+1, 0); n <= v.second; n++ {
		s := v.seconds[n%int64(len(v.seconds))]
		for i := range v.events {
			e := &v.events[i]
			s.Fault = s.Fault || e.Kind == FaultEvent && e.At < s.At+time.Second && (e.To == 0 || e.To >= s.At)
		}
		r.Seconds = append(r.Seconds, s)
	}
}

// lanes shows the workers' strips: all of them, or those that something happened to.
func (v *Viewer) lanes(r *Snapshot, now time.Duration) {
	all := make([]Strip, len(v.strips))
	for i := range v.strips {
		all[i] = v.strips[i].now(i, now, v.stopped[i].Load())
	}
	if len(all) > keptLanes {
		slices.SortStableFunc(all, func(a, b Strip) int { return cmp.Compare(v.interest(&b), v.interest(&a)) })
		r.Hidden = len(all) - keptLanes
		all = all[:keptLanes]
		slices.SortFunc(all, func(a, b Strip) int { return cmp.Compare(a.Worker, b.Worker) })
	}
	end := int64(now / StripStep)
	for i := range all {
		all[i].Cells = v.strips[all[i].Worker].show(end, StripCells)
	}
	r.Lanes, r.LanesEnd = all, time.Duration(end+1)*StripStep
}

// interest orders workers: those that stand, then holders, then who waits longest.
func (v *Viewer) interest(s *Strip) time.Duration {
	switch {
	case s.Mode&(Stopped|Overtaken) != 0:
		return history.Forever
	case s.Mode&(Held|Ghost) != 0:
		return history.Forever - 1
	default:
		return s.Since
	}
}

const (
	aroundLanes = 12
	aroundAfter = 750 * time.Millisecond // that an event's picture shows after it, and as much before
)

// around keeps a picture of what the workers did around the latest events, as soon as that is over.
func (v *Viewer) around(now time.Duration) {
	for i := len(v.events) - 1; i >= 0 && now-v.events[i].At < 5*time.Second; i-- {
		e := &v.events[i]
		if e.Around != nil || now < e.At+aroundAfter {
			continue
		}
		cells := int(2 * aroundAfter / StripStep)
		end := int64((e.At + aroundAfter) / StripStep)
		e.Begin = time.Duration(end-int64(cells)+1) * StripStep
		all := make([]Strip, len(v.strips))
		for w := range v.strips {
			all[w] = Strip{Worker: w, Page: v.strips[w].page, Cells: v.strips[w].show(end, cells)}
		}
		slices.SortStableFunc(all, func(a, b Strip) int { return cmp.Compare(busyness(&b), busyness(&a)) })
		all = all[:min(len(all), aroundLanes)]
		slices.SortFunc(all, func(a, b Strip) int { return cmp.Compare(a.Worker, b.Worker) })
		e.Around = all
	}
}

// busyness orders strips by how much a reader wants to see them.
func busyness(s *Strip) (n int) {
	for _, c := range s.Cells {
		switch {
		case c&Overlap != 0:
			n += 1000
		case c&(Stopped|Overtaken|Ghost) != 0:
			n += 100
		case c&Held != 0:
			n++
		}
	}
	return n
}
