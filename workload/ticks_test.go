package workload

import (
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
)

// TestEachWorkerAsksOnceATick: each worker has its own clock. Every second clock is right, and one clock is late by
// the largest difference.
func TestEachWorkerAsksOnceATick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := Shape{Workers: 4, Keys: 5, End: time.Hour, Tick: 10 * time.Millisecond, Apart: time.Second,
			Wait:  time.Millisecond,
			Retry: time.Millisecond, TTL: time.Minute}
		_, ops, _ := run(t, shape, catalogued(t, "local"), t.Context())
		visits, late := map[[2]int32]int{}, map[int32]time.Duration{}
		for _, op := range ops {
			if op.Kind != history.End {
				continue
			}
			visits[[2]int32{op.Worker, op.Key}]++
			by := op.Call - time.Duration(op.Key)*shape.Tick
			if was, ok := late[op.Worker]; ok && was.Round(time.Millisecond) != by.Round(time.Millisecond) {
				t.Errorf("the clock of worker %d is late by %v, and by %v", op.Worker, was, by)
			}
			late[op.Worker] = by
		}
		if len(visits) != 20 || late[0] > time.Millisecond || late[2] > time.Millisecond ||
			late[1].Round(time.Millisecond) != shape.Apart || late[3] >= shape.Apart {
			t.Errorf("got %d visits, late by %v", len(visits), late)
		}
	})
}
