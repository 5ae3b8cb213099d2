package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"hammerlock/history"
)

// BenchmarkCoordinator lets simulated agents send frames of a thousand operations each, as fast as the coordinator
// writes them. An iteration is a frame. The CPU time is that of both sides: half of the time for messages, TLS and the
// NATS server would be the agents'. For a history of a million operations: -benchtime 1000x.
func BenchmarkCoordinator(b *testing.B) {
	for _, n := range []int{4, 50, 200} {
		b.Run(fmt.Sprintf("%d agents", n), func(b *testing.B) { benchmarkCoordinator(b, n) })
	}
}

func benchmarkCoordinator(b *testing.B, n int) {
	r, all := pretend(b, n)
	m := history.NewMerge(history.NewClock(24*time.Hour), nil)
	for _, a := range r.agents {
		m.Feeds = append(m.Feeds, a.feed)
	}
	made := makeFrames(b, n, b.N)
	file, err := os.Create(filepath.Join(b.TempDir(), "history.bin"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	w, err := history.Create(file, history.Header{Workers: n, Processes: n + 1, Keys: 1})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	b.ResetTimer()
	before := cpu()
	for k, spool := range all {
		for _, frame := range made[k] {
			spool.add(frame)
		}
	}
	written := 0
	take := func(op *history.Op) {
		written++
		if err := w.Add(op); err != nil {
			b.Fatal(err)
		}
	}
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	for written < b.N*frameOps {
		<-ticker.C
		final := m.Drain(take)
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		r.written(final)
	}
	b.ReportMetric(float64(written)/b.Elapsed().Seconds(), "op/s")
	b.ReportMetric(float64(cpu()-before)/float64(written), "cpu-ns/op")
	b.ReportMetric(float64(bytesOf(made))/float64(written), "frame-B/op")
}

// pretend makes a coordinator with a run of the given number of agents, and their spools.
func pretend(b *testing.B, n int) (*run, []*spool) {
	b.Helper()
	token := NewToken()
	f, err := Open(Options{Count: n, Listen: "127.0.0.1:0", Token: token, Timeout: time.Minute, MaxSlack: time.Second,
		Say: func(string) {}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(f.Close)
	r := &run{f: f, id: "r", moved: make(chan struct{}, 1)}
	var all []*spool
	for k := range n {
		a := &agent{hello: hello{Epoch: fmt.Sprint("e", k)}, host: &host{}, r: r, number: k, feed: &history.Feed{}}
		a.track.same, a.scale.track = true, &a.track
		r.agents = append(r.agents, a)
		nc, err := connect(f.Address(), a.Epoch, token, Login{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(nc.Close)
		take := &worker{task: &task{plan: &plan{Run: r.id}, spool: newSpool(nc)}}
		if _, err := nc.Subscribe(ackSubject+a.Epoch, take.acknowledged); err != nil {
			b.Fatal(err)
		}
		all = append(all, take.task.spool)
	}
	f.run = r
	return r, all
}

// makeFrames divides a number of frames among agents. The last frame of each agent ends its history.
func makeFrames(b *testing.B, agents, count int) [][][]byte {
	b.Helper()
	all := make([][][]byte, agents)
	for i := range count {
		k := i % agents
		f := frame{Run: "r", Agent: fmt.Sprint("e", k), Number: uint64(i/agents + 1)}
		for j := range frameOps {
			at := time.Duration(i/agents*frameOps+j) * 100 * time.Microsecond
			op := history.Op{ID: history.ID((k+1)<<40 | (i/agents*frameOps + j + 1)), Kind: history.Acquire, Call: at,
				Return: at + 90*time.Microsecond, Until: at + time.Second,
				Outcome: history.OK, Worker: int32(k), Process: int16(k + 1),
				Token: uint64(i*frameOps+j)*0x9e3779b97f4a7c15 | 1}
			op.Hold = op.ID
			f.Ops, f.UpTo = append(f.Ops, op), op.Return+1
		}
		if i+agents >= count {
			f.UpTo = history.Forever
		}
		frame, err := f.put()
		if err != nil {
			b.Fatal(err)
		}
		all[k] = append(all[k], frame)
	}
	for k := count; k < agents; k++ { // these frames are empty
		f := frame{Run: "r", Agent: fmt.Sprint("e", k), Number: 1, UpTo: history.Forever}
		frame, err := f.put()
		if err != nil {
			b.Fatal(err)
		}
		all[k] = append(all[k], frame)
	}
	return all
}

func bytesOf(made [][][]byte) (n int) {
	for _, frames := range made {
		for _, f := range frames {
			n += len(f)
		}
	}
	return n
}

// cpu returns the CPU time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
