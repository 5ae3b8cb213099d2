package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for a short time, exact to a tenth of a millisecond; it blocks a thread for it.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR { // the runtime interrupts threads to preempt goroutines
	}
}
