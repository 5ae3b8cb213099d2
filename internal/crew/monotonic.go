package crew

import (
	"time"

	"golang.org/x/sys/unix"

	"hammerlock/history"
)

// Monotonic reads the clock that all processes of a machine share.
func Monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // fails only for clocks that do not exist
	return t.Nano()
}

// calibrations is how often the two clocks are compared; the closest pair of readings counts.
const calibrations = 1000

// calibrate finds how far this process's own clock, which the language does not show raw, is from the machine's.
// It returns what the shared clock read at a moment of this process, and by how much that may be wrong.
func calibrate() (moment time.Time, shared int64, doubt time.Duration) {
	doubt = time.Hour
	for range calibrations {
		before := Monotonic()
		now := time.Now()
		after := Monotonic()
		if width := time.Duration(after - before); width < doubt {
			moment, shared, doubt = now, before+int64(width/2), width
		}
	}
	return moment, shared, doubt
}

// clockAt is a clock that is zero at a reading of the machine's clock, of which another is that of a moment.
func clockAt(ordered bool, zero int64, moment time.Time, shared int64) *history.Clock {
	c := newClock(ordered)
	c.Set(moment, time.Duration(shared-zero))
	return c
}

// ClockFrom makes a run's clock whose zero is a reading of the machine's clock, and says by how much it may be wrong.
func ClockFrom(zero int64, ordered bool) (*history.Clock, time.Duration) {
	moment, shared, doubt := calibrate()
	return clockAt(ordered, zero, moment, shared), doubt
}
