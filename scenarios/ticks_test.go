package scenarios_test

import (
	"context"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/locks"
)

// shorter asks the servers for a shorter lease than it was asked for.
type shorter struct{ locks.Lock }

func (l shorter) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.Lock.Acquire(ctx, key, ttl*5/6)
}

// TestLiveTicksFindAShortKey: the key of a tick lasts for five sixths of the lease, and the slowest clock shows it.
func TestLiveTicksFindAShortKey(t *testing.T) {
	t.Parallel()
	right := wrong(t, "once", func(_ locks.Env, l locks.Lock) locks.Lock { return l })
	if status, text := verdict(t, right, "single", "ticks", 1); status == checker.Fail {
		t.Errorf("a right lock: %s", text)
	}
	lock := wrong(t, "once", func(_ locks.Env, l locks.Lock) locks.Lock { return shorter{l} })
	if status, text := verdict(t, lock, "single", "ticks", 1); status != checker.Fail {
		t.Errorf("got %v: %s", status, text)
	}
}
