package fleet

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/crew"
)

// The operations that BenchmarkTurns lets agents record.
const (
	turnAgents = 4
	turnRate   = 25_000 // operations a second, for each worker
	turnLong   = time.Second
)

// BenchmarkTurns lets four workers record 100 000 operations a second, in turns of a second. In one kind of turn, they
// share a process with the file. In the other, each is an agent that sends them over NATS and TLS. An iteration is a
// pair of turns; for a minute of each: -benchtime 60x. All runs in one process, so its CPU time is that of both sides.
func BenchmarkTurns(b *testing.B) {
	var ops, used [2]float64
	var heap [2]uint64
	for b.Loop() {
		for i, turn := range []func(*testing.B, *history.Clock, []*history.Lane) *turned{alone, apart} {
			n, cpu, bytes := take(b, turn)
			ops[i], used[i], heap[i] = ops[i]+float64(n), used[i]+float64(cpu), max(heap[i], bytes)
		}
	}
	for i, name := range []string{"alone", "fleet"} {
		b.ReportMetric(ops[i]/(float64(b.N)*turnLong.Seconds()), name+"-op/s")
		b.ReportMetric(used[i]/ops[i], name+"-cpu-ns/op")
		b.ReportMetric(float64(heap[i])/1e6, name+"-MB")
	}
	b.ReportMetric(100*(1-ops[1]/ops[0]), "lost-%")
}

// turned receives the operations of a turn.
type turned struct {
	merge   *history.Merge            // of the file
	written func(final time.Duration) // called with the time up to which the file is complete; may be nil
	end     func()                    // called when the workers have ended
}

// take runs a turn. It returns the number of operations, the CPU time until all of them were written, and the memory
// in use.
func take(b *testing.B, turn func(*testing.B, *history.Clock, []*history.Lane) *turned) (n int64, used time.Duration,
	heap uint64) {
	b.Helper()
	clock := history.NewClock(0)
	var lanes []*history.Lane
	for i := range turnAgents {
		lanes = append(lanes, history.NewLane(clock, i, int32(i), 1<<12, nil))
	}
	to := turn(b, clock, lanes)
	file, err := os.Create(filepath.Join(b.TempDir(), "history.bin"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	w, err := history.Create(file, history.Header{Workers: turnAgents, Processes: turnAgents + 1, Keys: 1})
	if err != nil {
		b.Fatal(err)
	}
	written, recorded := int64(0), make([]int64, turnAgents)
	emit := func(op *history.Op) {
		written++
		if err := w.Add(op); err != nil {
			b.Fatal(err)
		}
	}
	before := cpu()
	var workers sync.WaitGroup
	for i, l := range lanes {
		workers.Go(func() { recorded[i] = recordTurn(l) })
	}
	gone := make(chan struct{})
	go func() { workers.Wait(); to.end(); close(gone) }()
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for over := false; !over || written < n; {
		select {
		case <-gone:
			gone, over = nil, true
			for _, k := range recorded {
				n += k
			}
		case <-ticker.C:
		}
		final := to.merge.Drain(emit)
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		to.written(final)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return n, cpu() - before, m.HeapInuse
}

// recordTurn records operations at the rate for the length of a turn.
func recordTurn(l *history.Lane) (n int64) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); time.Since(began) < turnLong; <-ticker.C {
		for due := int64(time.Since(began).Seconds() * turnRate); n < due; n++ {
			op := l.Call(history.Acquire, 0)
			op.Hold, op.Outcome, op.Until, op.Token = op.ID, history.OK, op.Call+time.Second,
				uint64(n)*0x9e3779b97f4a7c15|1
			l.Return(op)
		}
	}
	return n
}

// alone puts the workers and the file in one process.
func alone(_ *testing.B, clock *history.Clock, lanes []*history.Lane) *turned {
	return &turned{history.NewMerge(clock, lanes), func(time.Duration) {}, func() {}}
}

// apart makes an agent of each worker.
func apart(b *testing.B, clock *history.Clock, lanes []*history.Lane) *turned {
	r, spools := pretend(b, len(lanes))
	to := &turned{history.NewMerge(clock, nil), r.written, nil}
	var senders sync.WaitGroup
	worked := make(chan struct{})
	for i, a := range r.agents {
		to.merge.Feeds = append(to.merge.Feeds, a.feed)
		s := &crew.Session{Clock: clock, Lanes: lanes[i : i+1]}
		t := &task{w: &worker{me: a.hello}, plan: &plan{Run: r.id}, spool: spools[i]}
		send := &sender{t: t, s: s, merge: history.NewMerge(clock, s.Lanes)}
		senders.Go(func() { send.run(worked) })
	}
	to.end = func() { close(worked); senders.Wait() }
	return to
}
