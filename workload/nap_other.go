//go:build !linux

package workload

import "time"

func nap(d time.Duration) { <-time.After(d) }
