package measure

import (
	"maps"
	"time"

	"hammerlock/results"
)

// Live is the state of a run in progress, as plain data.
type Live struct {
	At      time.Duration
	Warm    int64 // successful visits in the warm-up so far
	Done    int64 // counted visits in the measurement so far
	Errors  int64
	Visits  results.Visits   // visits of the measurement by outcome
	Kinds   map[string]int64 // number of errors of each kind, as in results.Run
	Waiting int              // number of workers that wait for a lock
	Acquire Quantiles        // acquire latency in the current second
	// Unserved is the longest current unavailability of a page.
	Unserved time.Duration
}

func (m *Meter) Live(at time.Duration) Live {
	l := Live{At: at, Warm: m.warm, Done: m.visits.Done, Waiting: m.waiting(), Visits: m.visits,
		Kinds: maps.Clone(m.errors)}
	if at < m.interval.from+2*intervalWidth { // if it is older, no worker got the lock for a while
		l.Acquire = m.interval.acquire.quantiles()
	}
	for _, n := range m.errors {
		l.Errors += n
	}
	if m.outages != nil {
		for _, g := range m.outages.open(m.workers, at) {
			l.Unserved = max(l.Unserved, g.to-g.from)
		}
	}
	return l
}

func (m *Meter) waiting() (n int) {
	for i := range m.workers {
		if m.workers[i].waiting {
			n++
		}
	}
	return n
}

// Finished returns the number of counted visits that ended within the measurement.
func (m *Meter) Finished() (n int64) {
	for i := range m.workers {
		n += m.workers[i].finish
	}
	return n
}

func (m *Meter) Summarize(r *results.Run, used results.Usage) {
	r.Measured = int64(m.length())
	r.Visits = m.visits
	r.Latency = results.Latencies{
		Acquire: m.acquire.summary(), Response: m.response.summary(), Hold: m.hold.summary(),
		Release: m.release.summary(), Handoff: m.handoff.summary(), Try: m.tries.summary(),
	}
	r.Waiting = results.Waiting{
		Unfinished: m.waits.summary(), Censored: m.waits.censored.count, Longest: int64(m.waits.longest()),
		Response: m.answers.summary(), RandomWaiter: m.waits.randomSummary(), Woken: m.wakes.summary(),
	}
	if r.Measured > 0 {
		r.Throughput = float64(m.Finished()) / time.Duration(r.Measured).Seconds()
	}
	r.Swing = m.swing()
	r.Fairness = m.fairness()
	r.Generator = m.judge(used)
	r.Errors = m.errors
	r.Windows = m.faults
	r.Availability = m.Availability(r.Roles)
}

// length returns the length of the measurement. A fixed number of visits is measured from the first due time to the
// last end, because workers need time to start, and the end of a run is noticed late.
func (m *Meter) length() time.Duration {
	if m.finite {
		return max(min(m.lastEnd, m.to)-m.firstDue, 0)
	}
	return max(m.to-m.from, 0)
}

// swing returns the range of the median latency and of the number of visits over the seconds of the run.
func (m *Meter) swing() (s results.Swing) {
	s.Acquire = [2]int64{int64(m.interval.least), int64(m.interval.most)}
	for at := m.from; at+intervalWidth <= m.to; at += intervalWidth {
		n := m.Between(at, at+intervalWidth)
		if at == m.from {
			s.Visits[0] = n
		}
		s.Visits = [2]float64{min(s.Visits[0], n), max(s.Visits[1], n)}
	}
	return s
}

func (m *Meter) fairness() results.Fairness {
	f := results.Fairness{StarvingWorkers: []int{}}
	var sum, squares float64
	workers := m.workers[:m.called]
	for _, w := range workers {
		v := float64(w.finish)
		sum += v
		squares += v * v
	}
	n := float64(len(workers))
	if sum > 0 {
		f.Jain = sum * sum / (n * squares)
	}
	for i, w := range workers {
		worker := results.Worker{Worker: i, Visits: w.finish, Longest: int64(w.longest)}
		if w.waits > 0 {
			worker.Mean = int64(w.waited / time.Duration(w.waits))
		}
		f.Workers = append(f.Workers, worker)
		if float64(w.finish) < results.StarvingShare*sum/n {
			f.StarvingWorkers = append(f.StarvingWorkers, i)
		}
		if i == 0 || w.finish < f.Worst.Visits || w.finish == f.Worst.Visits && worker.Longest > f.Worst.Longest {
			f.Worst = worker
		}
	}
	f.Starving = len(f.StarvingWorkers)
	if wanted := m.held + m.idleWaited; m.excludes && wanted > 0 {
		share := float64(m.idleWaited) / float64(wanted)
		f.IdleShare = &share
	}
	return f
}
