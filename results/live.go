package results

import "time"

// Live is what can be said of a run while it goes on. It is plain data.
type Live struct {
	At      time.Duration
	Done    int64 // counted visits within the measurement so far
	Errors  int64
	Waiting int // workers that wait for a lock
	P50     time.Duration
	P99     time.Duration // of the acquires of the current second
}

// Live describes the run at the given time.
func (m *Meter) Live(at time.Duration) Live {
	a := m.interval.acquire
	l := Live{At: at, Done: m.Visits.Done, P50: a.Quantile(0.5), P99: a.Quantile(0.99)}
	for _, n := range m.Errors {
		l.Errors += n
	}
	for _, w := range m.workers {
		if w.waiting {
			l.Waiting++
		}
	}
	return l
}
