package explore

import (
	"testing"
	"time"
)

// TestAloneSchedulesASecond says how fast right locks are explored, and fails if that is slow beyond doubt.
func TestAloneSchedulesASecond(t *testing.T) {
	for _, name := range []string{"lease", "watchdog", "redlock"} {
		spec := find(t, name)
		o := suited(spec, 2)
		o.Budget = 500 * time.Millisecond
		begun := used()
		r := run(t, spec, o)
		speed := float64(r.Schedules()) / (used() - begun).Seconds()
		t.Logf("%s: %.0f schedules per second of processor time", name, speed)
		if speed < 20 {
			t.Errorf("%s: %.0f schedules a second", name, speed)
		}
	}
}
