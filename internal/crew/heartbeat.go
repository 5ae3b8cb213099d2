package crew

import (
	"fmt"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// The heartbeat is a timer that fires once every beat. If it is late by more than Gap, the process was paused.
// Measured: on two cores with two busy loops beside the run, the latest of 6000 beats was 29 ms late; with ten times as
// many busy loops as cores, most were late by less than 100 ms.
const (
	beat = 10 * time.Millisecond
	gap  = 100 * time.Millisecond
)

// Gap is the shortest pause of a process that is recorded, for leases of that length; 0 = there are no leases. A pause
// that costs a holder its lease is much longer than Gap.
func Gap(lease time.Duration) time.Duration {
	if lease == 0 {
		return gap
	}
	return min(max(lease/6, 2*beat), gap)
}

// loadEvery is how often the machine's load is read, for comparison with the load after a pause.
const loadEvery = 250 * time.Millisecond

// Heartbeat notices when its process did not run, whatever the reason: a signal, a suspended machine, the scheduler. It
// records each such time as an operation Gap.
type Heartbeat struct {
	lane  *history.Lane
	value int64 // of the operations
	note  func(history.ID, string)
	gap   time.Duration
	load  loadSample
	last  time.Duration // beat
	ran   atomic.Int64
}

// NewHeartbeat makes a Heartbeat that records in a lane of its own, and lets it beat once. With apart, it runs in the
// suite's process while the workers run in others. The function note is called with the reason of a pause, if that is
// known; it may be nil.
func NewHeartbeat(lane *history.Lane, gap time.Duration, apart bool, note func(history.ID, string)) *Heartbeat {
	h := &Heartbeat{lane: lane, gap: gap, note: note, last: lane.Clock().Now()}
	if apart {
		h.value = 1
	}
	return h
}

// Run lets the heartbeat beat until done is closed.
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

// look reads the machine's load from time to time, and after a pause. If the load explains the pause, it calls note.
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

// Ran is how long the process has run so far, without its pauses. It is for time limits on servers: they must not
// include times in which this process could not have received an answer.
func (h *Heartbeat) Ran() time.Duration { return time.Duration(h.ran.Load()) }
