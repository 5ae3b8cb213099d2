package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for a short time. It is exact to a tenth of a millisecond, which Go's timers are not, and blocks a thread.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR { // repeat: the runtime's signals for preemption interrupt the sleep
	}
}
