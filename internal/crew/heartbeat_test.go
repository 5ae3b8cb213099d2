package crew

import (
	"math"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

func TestTicksOfTheMachine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ticks{
		// guests are in user
		"cpu  100 20 30 400 5 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n": {100 + 20 + 30 + 6 + 7 + 80, 648, 80,
			100 + 20 + 30},
		// before Linux 2.6.11
		"cpu  100 20 30 400 5 6 7": {163, 568, 0, 150},
		"cpu  100 twenty 30 400":   {},
		"":                         {},
	} {
		if got := parseTicks(text); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

// waits returns a histogram with the numbers of goroutines that waited for up to 1 ms, 0.5 s, 5 s, and longer.
func waits(counts ...uint64) *metrics.Float64Histogram {
	return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 0.001, 0.5, 5, math.Inf(1)}}
}

func TestWhyTheProcessStoodStill(t *testing.T) {
	t.Parallel()
	before := loadSample{at: time.Second, machine: ticks{stolen: 50}, sched: waits(7, 1, 2, 0)}
	for want, after := range map[string]loadSample{
		"": {machine: ticks{stolen: 50 + 240}, sched: waits(99, 2, 2, 0)},
		"in the last 5.1 s: 3.1 s of CPU time stolen by the hypervisor": {machine: ticks{stolen: 50 + 310},
			sched: waits(8, 1, 2, 0)},
		"in the last 5.1 s: runnable goroutines waited up to 5 s for a CPU": {machine: ticks{stolen: 50},
			sched: waits(8, 1, 3, 0)},
		"in the last 5.1 s: 3.1 s of CPU time stolen by the hypervisor, runnable goroutines waited up to 5 s for " +
			"a CPU": {
			machine: ticks{stolen: 50 + 310}, sched: waits(8, 1, 3, 0)},
	} {
		after.at = before.at + 5100*time.Millisecond
		if got := after.whyStill(before, 4970*time.Millisecond); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAGapIsGivenItsOwnWords: a beat was late, and the load samples show much stolen time before it.
func TestAGapIsGivenItsOwnWords(t *testing.T) {
	t.Parallel()
	lane := history.NewLane(history.NewOrderedClock(0), 3, -1, 8, make(chan struct{}, 1))
	notes := map[history.ID]string{}
	h := NewHeartbeat(lane, Gap(0), false, func(id history.ID, text string) { notes[id] = text })
	h.look(0, time.Second)
	if len(notes) > 0 || h.load.sched == nil {
		t.Fatalf("the first look: notes %v, load %+v", notes, h.load)
	}
	h.load.machine.stolen -= 100
	h.look(time.Second, time.Second+gap)
	if h.load.at != time.Second {
		t.Fatal("a beat in time reads the load")
	}
	id := lane.Next()
	h.look(time.Second, 2*time.Second)
	text := notes[id]
	if len(notes) != 1 || !strings.HasPrefix(text, "the machine paused for 1 s (in the last 1 s: ") ||
		h.load.at != 2*time.Second {
		t.Fatalf("notes: %v", notes)
	}
	if !strings.Contains(text, " of CPU time stolen by the hypervisor") {
		t.Error(text)
	}
}
