package results

import (
	"testing"
	"time"

	"hammerlock/history"
)

// BenchmarkObserve is the price of taking a visit of five operations into account.
func BenchmarkObserve(b *testing.B) {
	m := NewMeter(MeterOptions{Workers: 64, Keys: 1000, To: time.Hour, Excludes: true})
	s := &script{}
	for w := range int32(64) {
		at := time.Duration(w+1) * time.Millisecond
		s.visit(w, at, at+time.Duration(w+7)*137*time.Microsecond, at+time.Duration(w+40)*173*time.Microsecond)
	}
	var ops []history.Op
	for _, op := range s.ops {
		if op.Reason != history.Busy {
			op.Key = op.Worker * 3
			ops = append(ops, op)
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for range 5 {
			m.Observe(&ops[n%len(ops)])
			n++
		}
	}
}
