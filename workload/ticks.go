package workload

import (
	"context"
	"time"
)

// tick waits for the next tick of the worker's clock and returns the page for that tick. Like a cron job on many
// machines, each worker tries to do the same task at the same time. Each worker's clock is late by a constant. For
// half of the workers the constant is 0, so these ask at the same moment. Worker 1 has the largest constant, so
// each tick has one late request at least. The result ok is false after the last tick.
func (w *worker) tick(stop context.Context) (due time.Duration, key int32, ok bool) {
	number := w.shape.First + w.number
	if w.begun == 0 && number%2 == 1 {
		if w.apart = w.shape.Apart; number > 1 {
			w.apart = time.Duration(w.rand.Float64() * float64(w.shape.Apart))
		}
	}
	due = time.Duration(w.begun)*w.shape.Tick + w.apart
	if due >= w.shape.End || w.begun >= int64(w.shape.Keys) || !w.sleep(stop, max(due-w.clock.Now(), 0)) {
		return 0, 0, false
	}
	w.now = w.clock.Now()
	return w.now, int32(w.begun), true
}
