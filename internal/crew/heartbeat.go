package crew

import (
	"fmt"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// The heart beats once every beat. A process whose beat was late by more than Gap was paused. On two cores with two
// busy loops beside the run, the latest of 6000 beats was 29 ms late. With ten times as many busy loops as cores, most
// gaps are under 100 ms.
const (
	beat = 10 * time.Millisecond
	gap  = 100 * time.Millisecond
)

// Gap is the shortest pause of a process that is recorded, for leases of that length; 0 = there are no leases. A pause
// that costs a holder its lease is many times longer, for short leases too.
func Gap(lease time.Duration) time.Duration {
	if lease == 0 {
		return gap
	}
	return min(max(lease/6, 2*beat), gap)
}

// loadEvery is how often the load is read, to compare it with the load after a gap.
const loadEvery = 250 * time.Millisecond

// Heartbeat notices that its process did not run, whatever the reason: a signal, the machine, the scheduler. It records
// each such time as a Gap.
type Heartbeat struct {
	lane  *history.Lane
	value int64 // of the operations
	note  func(history.ID, string)
	gap   time.Duration
	load  loadSample
	last  time.Duration // beat
	ran   atomic.Int64
}

// NewHeartbeat makes a heartbeat that records gaps in its own lane, and beats for the first time. Apart means that it
// beats in the suite's process while the workers live in others. Note receives the reason of a gap, if it is known; nil
// = not wanted.
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

// look reads the load now and then, and after a gap. If the load explains the gap, it adds words, which begin like
// those that checkers and the dashboard have for a gap without a reason.
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

// Ran is how long the process has run so far, without its pauses. A server that did not answer within such a time was
// silent; it is not that the process did not listen.
func (h *Heartbeat) Ran() time.Duration { return time.Duration(h.ran.Load()) }
