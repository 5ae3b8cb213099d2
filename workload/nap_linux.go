package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for a short time and blocks its thread. It is exact to 0.1 ms; Go's timers are not.
func nap(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&left, &left) == unix.EINTR { // sleep for the rest: the runtime's signals interrupt the sleep
	}
}
