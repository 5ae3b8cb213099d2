package crew

import (
	"fmt"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// The heartbeat is a timer with the period beat. If it is late by more than Gap, the process was paused. This was
// measured on two cores: with two busy loops, the latest of 6000 beats was 29 ms late. With ten busy loops for each
// core, most beats were less than 100 ms late.
const (
	beat = 10 * time.Millisecond
	gap  = 100 * time.Millisecond
)

// Gap returns the shortest pause that is recorded if leases have the given length; 0 = there are no leases. A pause
// that costs a holder its lease is much longer.
func Gap(lease time.Duration) time.Duration {
	if lease == 0 {
		return gap
	}
	return min(max(lease/6, 2*beat), gap)
}

// loadEvery is the time between two readings of the machine's load. The load after a pause is compared with the last
// reading.
const loadEvery = 250 * time.Millisecond

// Heartbeat detects times in which its process did not run, for any reason: a signal, a suspended machine, the
// scheduler. It records each of them as an operation Gap.
type Heartbeat struct {
	lane  *history.Lane
	value int64 // Value of the recorded operations
	note  func(history.ID, string)
	gap   time.Duration
	load  loadSample
	last  time.Duration // time of the last beat
	ran   atomic.Int64
}

// NewHeartbeat makes a Heartbeat that records in a lane of its own. If apart is true, it runs in the suite's process,
// while the workers run in other processes. It calls note with the reason of a pause, if that is known; note may be
// nil.
func NewHeartbeat(lane *history.Lane, gap time.Duration, apart bool, note func(history.ID, string)) *Heartbeat {
	h := &Heartbeat{lane: lane, gap: gap, note: note, last: lane.Clock().Now()}
	if apart {
		h.value = 1
	}
	return h
}

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

// look reads the machine's load from time to time, and after each pause. If the load explains a pause, it calls note.
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

// Ran returns how long the process has run so far, without its pauses. Use it for time limits on servers, since a
// paused process cannot receive an answer.
func (h *Heartbeat) Ran() time.Duration { return time.Duration(h.ran.Load()) }
