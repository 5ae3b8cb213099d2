//go:build !linux

package workload

import "time"

// nap sleeps for a moment.
func nap(d time.Duration) { <-time.After(d) }
