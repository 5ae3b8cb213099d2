package crew

import (
	"time"

	"golang.org/x/sys/unix"

	"hammerlock/history"
)

// Monotonic reads the clock that all processes of a machine share.
func Monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it fails only for clocks that do not exist
	return t.Nano()
}

// calibrations is how many times the two clocks are compared; the closest pair of readings is used.
const calibrations = 1000

// calibrate compares this process's clock, whose raw value the language does not show, with the machine's. It returns a
// moment of this process, the shared clock's reading at it, and the largest possible error.
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

// clockAt returns a clock with its zero at a reading of the machine's clock; moment and shared are one moment on both
// clocks.
func clockAt(ordered bool, zero int64, moment time.Time, shared int64) *history.Clock {
	c := newClock(ordered)
	c.Set(moment, time.Duration(shared-zero))
	return c
}

// ClockFrom makes a run's clock with its zero at a reading of the machine's clock, and returns its largest possible
// error.
func ClockFrom(zero int64, ordered bool) (*history.Clock, time.Duration) {
	moment, shared, doubt := calibrate()
	return clockAt(ordered, zero, moment, shared), doubt
}
