//go:build !linux

package workload

import "time"

// nap sleeps for a short time.
func nap(d time.Duration) { <-time.After(d) }
