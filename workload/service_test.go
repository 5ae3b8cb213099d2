package workload

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// dead is a service whose port takes no connection.
type dead struct{ Counter }

func (dead) Visit(context.Context, int, int32) (int64, error) {
	<-time.After(100 * time.Microsecond)
	return 0, fmt.Errorf("%w: connection refused", topologies.ErrUnreachable)
}

// TestAWorkerRestsWhereNoConnectionIsMade: a closed loop does not fill the history with refused connections.
func TestAWorkerRestsWhereNoConnectionIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due, _, _ := runWith(t, Shape{Workers: 2, Keys: 1, End: time.Second}, catalogued(t, "none"), t.Context(),
			func(c *Workers) { c.Counting, c.Counter = locks.Elsewhere, dead{newMemoryCounter()} })
		if due.Begun < 2 || due.Begun > 200 {
			t.Errorf("two workers tried %d times in a second", due.Begun)
		}
	})
}
