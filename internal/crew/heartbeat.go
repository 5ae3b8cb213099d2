package crew

import (
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// A heart beats every beat. A process whose heart was late by more than Gap stood still. On two cores with two busy loops
// beside a run the latest of 6000 beats was 29 ms late; with ten times as many as cores, most gaps are under 100 ms.
const (
	beat = 10 * time.Millisecond
	Gap  = 100 * time.Millisecond
)

// Heartbeat notices that the process it beats in stood still, whatever did it: a signal, the machine, the scheduler. It
// records each time as a Gap.
type Heartbeat struct {
	lane  *history.Lane
	value int64 // of the operations
	ran   atomic.Int64
}

// NewHeartbeat makes one that records into a lane of its own. Apart tells that it beats in the suite's own process while
// the workers live in others.
func NewHeartbeat(lane *history.Lane, apart bool) *Heartbeat {
	h := &Heartbeat{lane: lane}
	if apart {
		h.value = 1
	}
	return h
}

// Run beats until done is closed.
func (h *Heartbeat) Run(done <-chan struct{}) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	clock := h.lane.Clock()
	for last := clock.Now(); ; {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		now := clock.Now()
		if now-last > Gap {
			h.lane.Mark(&history.Op{Kind: history.Gap, Key: -1, Worker: -1, Call: last, Value: h.value, Outcome: history.OK})
		}
		h.ran.Add(int64(min(now-last, 2*beat)))
		last = now
	}
}

// Ran is how long the process has run so far, without the times in which it stood still: what did not answer within
// such a time was silent, and not only unheard.
func (h *Heartbeat) Ran() time.Duration { return time.Duration(h.ran.Load()) }
