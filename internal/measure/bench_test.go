package measure

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hammerlock/history"
)

// BenchmarkObserve measures the cost of observing a visit of five operations.
func BenchmarkObserve(b *testing.B) {
	m := NewMeter(Options{Workers: 64, Keys: 1000, To: time.Hour, Excludes: true})
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

// BenchmarkObserveCold measures Observe as it is during a run, where other code evicts its data from the CPU caches
// every few hundred visits. Workers on 10 000 pages never meet, and latencies vary as in real runs. The unit is
// ns/visit.
func BenchmarkObserveCold(b *testing.B) {
	const keys, between = 10_000, 320
	m := NewMeter(Options{Workers: 64, Keys: keys, To: time.Hour, Excludes: true})
	ops := lonelyVisits(50*between, keys)
	others, lap := make([]byte, 3<<20), ops[len(ops)-1].Return+time.Second
	var spent time.Duration
	n, visits := 0, 0
	for b.Loop() {
		for i := 0; i < len(others); i += 64 {
			others[i]++
		}
		start := time.Now()
		for i := range ops[n : n+4*between] {
			m.Observe(&ops[n+i])
			ops[n+i].Call, ops[n+i].Return, ops[n+i].Due = ops[n+i].Call+lap, ops[n+i].Return+lap, ops[n+i].Due+lap
		}
		spent += time.Since(start)
		visits += between
		n = (n + 4*between) % len(ops)
	}
	b.ReportMetric(float64(spent)/float64(visits), "ns/visit")
}

// lonelyVisits returns the four operations of each of n visits by 64 workers, in the order of their returns.
func lonelyVisits(n, keys int) (ops []history.Op) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		op := history.Op{ID: history.ID(4*i + 1), Worker: int32(i % 64), Key: int32(r.IntN(keys)), Outcome: history.OK}
		op.Hold, op.Due = op.ID, time.Duration(i)*200*time.Microsecond
		op.Return = op.Due
		for _, kind := range []history.Kind{history.Acquire, history.Store, history.Release} {
			op.Kind, op.Call = kind, op.Return
			op.Return += time.Duration(float64(time.Millisecond) * math.Exp(r.NormFloat64()/2))
			ops = append(ops, op)
			op.ID++
		}
		op.Kind, op.Call = history.End, op.Due
		ops = append(ops, op)
	}
	slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return ops
}
