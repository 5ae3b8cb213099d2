package recording

import (
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
)

// TestAnOpenHealDelaysNoWorker: a heal takes seconds, in which the workers' operations are shown.
func TestAnOpenHealDelaysNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, wake := history.NewOrderedClock(0), make(chan struct{}, 1)
		worker := history.NewLane(clock, 0, 0, 8, wake)
		var seen []history.Kind
		var complete time.Duration
		r, err := New(Options{Clock: clock, Lanes: []*history.Lane{worker}, Wake: wake,
			Observe: func(op *history.Op) { seen = append(seen, op.Kind) },
			Tell:    func(_, final time.Duration) { complete = final }})
		if err != nil {
			t.Fatal(err)
		}
		suite := r.Lane(8)
		r.Start()
		heal := suite.Call(history.Heal, -1)
		returned := worker.Return(worker.Call(history.Load, 0))
		<-time.After(time.Second)
		synctest.Wait()
		if len(seen) != 1 || seen[0] != history.Load || complete <= returned {
			t.Errorf("saw %v, complete to %v, although the worker returned at %v", seen, complete, returned)
		}
		suite.Return(heal)
		r.Stop()
		r.Flush()
		if len(seen) != 2 || seen[1] != history.Heal {
			t.Errorf("saw %v, want the load and then the heal", seen)
		}
	})
}
