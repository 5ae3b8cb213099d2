package checker

import (
	"strings"
	"testing"

	"hammerlock/history"
)

// TestHowLateAHolderWasTold leaves out the time in which its process was stopped. A server counts a lease of 300 ms for 299 ms at least.
func TestHowLateAHolderWasTold(t *testing.T) {
	for stop, want := range map[bool]string{false: "1 holder told of a lost lease, at most 152 ms after its end",
		true: "1 holder told of a lost lease, at most 52.0 ms after its end"} {
		s := newScript()
		s.Claims.Renews, s.Bounds.Rate = true, 0
		s.fault(serverHangs, 100, 460)
		if stop {
			s.fault(processStops, 320, 420)
			s.gap(0, 320, 420)
			s.Processes = 2
			s.gap(1, 300, 440) // is nobody's excuse here
		}
		a := s.acquire(1, 0, 1, 300)
		s.last().Until = history.Forever
		op := s.on(a, history.Lose, 450, 450)
		op.Outcome = history.OK
		if v := leaseValidity.Check(s.prepare(t)); !strings.Contains(v.Summary, want) {
			t.Errorf("process stopped %v: %v: %s, want %s", stop, v.Status, v.Summary, want)
		}
	}
}
