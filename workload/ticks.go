package workload

import (
	"context"
	"time"
)

// tick waits for the worker's next tick, by a clock that is late by as much all the time, and returns the page that
// stands for it. The clocks of every second worker agree, so that these ask at once. It is false when the last tick was
// visited.
func (w *worker) tick(stop context.Context) (due time.Duration, key int32, ok bool) {
	number := w.shape.First + w.number
	if w.begun == 0 && number%2 == 1 {
		w.apart = time.Duration(w.rand.Float64() * float64(w.shape.Apart))
	}
	due = time.Duration(w.begun)*w.shape.Tick + w.apart
	if due >= w.shape.End || w.begun >= int64(w.shape.Keys) || !w.sleep(stop, max(due-w.clock.Now(), 0)) {
		return 0, 0, false
	}
	w.now = w.clock.Now()
	return w.now, int32(w.begun), true
}
