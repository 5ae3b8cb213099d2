package workload

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/locks"
)

type panicking struct {
	locks.Lock
	tries int
}

func (p *panicking) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	if p.tries++; p.tries == 3 {
		panic("index out of range")
	}
	return p.Lock.Acquire(ctx, key, ttl)
}

// TestALockThatPanicsEndsItsWorker and not the process: the other workers go on, and the record names the place.
func TestALockThatPanicsEndsItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := catalogued(t, "local")
		plan := Shape{Workers: 2, Keys: 2, Hold: time.Millisecond, Retry: time.Millisecond, End: 100 * time.Millisecond}
		due, _, _ := run(t, plan, func(worker int) locks.Lock {
			if worker == 1 {
				return &panicking{Lock: open(worker)}
			}
			return open(worker)
		}, t.Context())
		if due.Err != nil || len(due.Panics) != 1 || due.Panics[0].Text != "worker 1 panicked: index out of range" ||
			!strings.Contains(due.Panics[0].Said[0], "(*panicking).Acquire") ||
			!slices.Equal(due.Panics[0].Workers, []int32{1}) {
			t.Errorf("got %v, %+v", due.Err, due.Panics)
		}
		if due.Begun < 20 {
			t.Errorf("only %d visits were begun", due.Begun)
		}
	})
}
