package crew

import (
	"fmt"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// A heart beats every beat. A process whose heart was late by more than Gap was paused. On two cores with two busy
// loops beside a run the latest of 6000 beats was 29 ms late; with ten times as many as cores, most gaps are under 100
// ms.
const (
	beat = 10 * time.Millisecond
	gap  = 100 * time.Millisecond
)

// Gap is how long a process may stand still before that is written down, where leases last so long; 0 = there are none.
// A pause that costs a holder its lease is a multiple of it, for short leases too.
func Gap(lease time.Duration) time.Duration {
	if lease == 0 {
		return gap
	}
	return min(max(lease/6, 2*beat), gap)
}

// loadEvery is how often a heart reads the load, to compare it with that after a gap.
const loadEvery = 250 * time.Millisecond

// Heartbeat notices that the process it beats in stood still, whatever did it: a signal, the machine, the scheduler. It
// records each time as a Gap.
type Heartbeat struct {
	lane  *history.Lane
	value int64 // of the operations
	note  func(history.ID, string)
	gap   time.Duration
	load  loadSample
	last  time.Duration // beat
	ran   atomic.Int64
}

// NewHeartbeat makes one that records gaps into a lane of its own, and beats for the first time. Apart tells that it
// beats in the suite's own process while the workers live in others. Note is given words for a gap whose reason is
// known; nil = nobody keeps them.
func NewHeartbeat(lane *history.Lane, gap time.Duration, apart bool, note func(history.ID, string)) *Heartbeat {
	h := &Heartbeat{lane: lane, gap: gap, note: note, last: lane.Clock().Now()}
	if apart {
		h.value = 1
	}
	return h
}

// Run beats until done is closed.
func (h *Heartbeat) Run(done <-chan struct{}) {
	next := time.Tick(beat)
	clock := h.lane.Clock()
	for {
		select {
		case <-done:
			return
		case <-next:
		}
		last, now := h.last, clock.Now()
		h.look(last, now)
		if now-last > h.gap {
			h.lane.Mark(&history.Op{Kind: history.Gap, Key: -1, Worker: -1, Call: last, Value: h.value,
				Outcome: history.OK})
		}
		h.ran.Add(int64(min(now-last, 2*beat)))
		h.last = now
	}
}

// look reads the load now and then, and after a gap, which it gives words if the load explains it. They begin like
// those that checkers and the dashboard have for a gap without.
func (h *Heartbeat) look(last, now time.Duration) {
	gap := now - last
	if h.note == nil || gap <= h.gap && now-h.load.at < loadEvery {
		return
	}
	before := h.load
	h.load = readLoad(now, nil)
	if gap <= h.gap || before.sched == nil {
		return
	}
	if why := h.load.whyStill(before, gap); why != "" {
		h.note(h.lane.Next(), fmt.Sprintf("the machine paused for %.3g s (%s)", gap.Seconds(), why))
	}
}

// Ran is how long the process has run so far, without the times in which it stood still: what did not answer within
// such a time was silent, and not only unheard.
func (h *Heartbeat) Ran() time.Duration { return time.Duration(h.ran.Load()) }
