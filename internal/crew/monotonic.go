package crew

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic reads the clock that all processes of a machine share.
func monotonic() int64 {
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
		before := monotonic()
		now := time.Now()
		after := monotonic()
		if width := time.Duration(after - before); width < doubt {
			moment, shared, doubt = now, before+int64(width/2), width
		}
	}
	return moment, shared, doubt
}

// offset is what a clock whose zero was at the shared time reads now.
func offset(zero int64, moment time.Time, shared int64) time.Duration {
	return time.Duration(shared-zero) + time.Since(moment)
}
