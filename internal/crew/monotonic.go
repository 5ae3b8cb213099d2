package crew

import (
	"time"

	"golang.org/x/sys/unix"

	"hammerlock/history"
)

// Monotonic returns the time, in ns, of the monotonic clock that all processes of a machine share.
func Monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // this clock always exists
	return t.Nano()
}

// calibrations is the number of comparisons of the two clocks. The closest pair of readings is used.
const calibrations = 1000

// calibrate compares this process's monotonic clock, whose value Go does not show, with the machine's. It returns a
// time, the machine's clock at that time, and the largest possible error.
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

// clockAt returns a clock that is zero when the machine's clock reads the value of the parameter zero. The arguments
// moment and shared are the same instant on the two clocks.
func clockAt(ordered bool, zero int64, moment time.Time, shared int64) *history.Clock {
	c := newClock(ordered)
	c.Set(moment, time.Duration(shared-zero))
	return c
}

// ClockFrom returns a run's clock that is zero when the machine's clock reads the value of the parameter zero, and
// the largest possible error of that clock.
func ClockFrom(zero int64, ordered bool) (*history.Clock, time.Duration) {
	moment, shared, doubt := calibrate()
	return clockAt(ordered, zero, moment, shared), doubt
}
