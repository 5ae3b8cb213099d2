package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for a moment, to a tenth of a millisecond, and keeps a thread for it.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR { // the runtime interrupts threads to preempt goroutines
	}
}
