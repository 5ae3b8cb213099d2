package measure

import (
	"maps"
	"time"

	"hammerlock/results"
)

// Live has the most important measurements of a run in progress.
type Live struct {
	At      time.Duration
	Warm    int64 // successful visits during the warm-up
	Done    int64 // counted visits in the measurement
	Errors  int64
	Visits  results.Visits   // visits in the measurement, by their outcome
	Kinds   map[string]int64 // number of errors by their kind, as in results.Run
	Waiting int              // number of workers that wait for a lock at present
	Acquire Quantiles        // acquire latencies in the current second
	// Unserved is for how long a page has been unavailable at present. If there are several such pages, the longest
	// time.
	Unserved time.Duration
}

func (m *Meter) Live(at time.Duration) Live {
	l := Live{At: at, Warm: m.warm, Done: m.visits.Done, Waiting: m.waiting(), Visits: m.visits,
		Kinds: maps.Clone(m.errors)}
	if at < m.interval.from+2*intervalWidth { // skip an older second, in which no worker got the lock
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

// length returns the length of the measurement. If the number of visits is fixed, it is the time from the first due
// time to the end of the last visit. This leaves out the start of the workers, and the delay in noticing the end.
func (m *Meter) length() time.Duration {
	if m.finite {
		return max(min(m.lastEnd, m.to)-m.firstDue, 0)
	}
	return max(m.to-m.from, 0)
}

// swing returns the smallest and the largest value in any second of the run, both for the median latency and for the
// number of visits.
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
