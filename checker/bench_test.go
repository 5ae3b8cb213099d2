package checker

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"hammerlock/history"
)

// synthetic writes a legal history of about n operations. 32 workers contend for a few pages. Each visit has a refused
// try of another worker, a grant, a load, a store, a release and an end; some visits have an extension.
func synthetic(n int) *history.History {
	h := &history.History{Ops: make([]history.Op, 0, n)}
	h.Header = synthesize(n, func(op *history.Op) { h.Ops = append(h.Ops, *op) })
	return h
}

// synthesize passes the operations of such a history to a function, one after the other.
func synthesize(n int, each func(*history.Op)) (h history.Header) {
	const workers, keys = 32, 8
	h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true}
	h.Bounds = history.Bounds{Rate: 0.001, Round: 2 * time.Millisecond}
	h.Workers, h.Processes, h.Keys = workers, 1, keys
	h.Retry, h.Wait = time.Millisecond, 10*time.Second
	numbers := [workers]uint64{}
	var stored [keys]history.ID
	var views [keys]int64
	const ttl = 5 * time.Second
	visit := make([]history.Op, 0, 8)
	add := func(kind history.Kind, worker, key int, call, ret time.Duration) *history.Op {
		numbers[worker]++
		visit = append(visit, history.Op{ID: history.ID(uint64(worker+1)<<40 | numbers[worker]), Kind: kind,
			Outcome: history.OK,
			Worker:  int32(worker), Key: int32(key), Call: call, Return: ret, Due: call})
		return &visit[len(visit)-1]
	}
	done, last := 0, time.Duration(0)
	handOn := func() {
		for i := range visit {
			each(&visit[i])
		}
		done, last, visit = done+len(visit), visit[len(visit)-1].Return, visit[:0]
	}
	for v := 0; done+7+keys <= n; v++ {
		key, worker := v%keys, (v*13+v/32)%workers
		t := time.Duration(v) * 100 * time.Microsecond
		a := add(history.Acquire, worker, key, t+1000, t+3000)
		a.Hold, a.Token, a.Fence, a.TTL, a.Until = a.ID, uint64(a.ID)*0x9e3779b97f4a7c15, int64(v/keys)+1,
			ttl, t+ttl-ttl/100
		id, fence := a.ID, a.Fence
		refused := add(history.Acquire, (worker+1)%workers, key, t+4000, t+5000)
		refused.Hold, refused.Outcome, refused.Reason = refused.ID, history.Failed, history.Busy
		load := add(history.Load, worker, key, t+6000, t+7000)
		load.Hold, load.Value, load.Seen = id, views[key], stored[key]
		if v%8 == 0 {
			x := add(history.Extend, worker, key, t+7100, t+7900)
			x.Hold, x.TTL, x.Until = id, ttl, t+ttl-ttl/100
		}
		store := add(history.Store, worker, key, t+8000, t+9000)
		views[key]++
		store.Hold, store.Value, store.Seen, store.Fence = id, views[key], stored[key], fence
		stored[key] = store.ID
		add(history.Release, worker, key, t+10_000, t+11_000).Hold = id
		end := add(history.End, worker, key, t+1000, t+12_000)
		end.Until, end.Due = t+1000, t+1000
		handOn()
	}
	for key := range keys {
		final := add(history.Final, 0, key, last+1, last+2)
		final.Value, final.Seen = views[key], stored[key]
	}
	handOn()
	return h
}

// The largest size takes gigabytes, and must be requested: CHECKER_BENCH=10000000.
func sizes() []int {
	list := []int{1e4, 1e5, 1e6}
	if n, err := strconv.Atoi(os.Getenv("CHECKER_BENCH")); err == nil && n > 0 {
		list = append(list, n)
	}
	return list
}

func BenchmarkCheckers(b *testing.B) {
	for _, k := range All {
		for _, n := range sizes() {
			b.Run(fmt.Sprintf("%s/%d", k.Name, n), func(b *testing.B) {
				h := synthetic(n)
				c, err := Prepare(h)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					c.once = sync.Once{} // computes again what the checkers share
					if v := k.Check(c); v.Status == Fail || v.Status == Inconclusive && v.Exposed > 0 {
						b.Fatalf("%v: %s", v.Status, v.Summary)
					}
				}
				perOp(b, n)
			})
		}
	}
}

// BenchmarkJudge measures the whole work on a history in memory: prepare it, and run every checker.
func BenchmarkJudge(b *testing.B) {
	for name, made := range map[string]func(n int) *history.History{
		"plain":        synthetic,
		"1 % violated": func(n int) *history.History { return violated(n, 1e4, n/100) },
		"64 processes": inProcesses,
		"100 permits": func(n int) *history.History {
			return crowded(n, history.Claims{Excludes: true, Expires: true, Permits: 100})
		},
		"read and write": func(n int) *history.History {
			return crowded(n, history.Claims{Excludes: true, Expires: true, Readers: true})
		},
	} {
		for _, n := range sizes() {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				h := made(n)
				b.ReportAllocs()
				for b.Loop() {
					c, err := Prepare(h)
					if err != nil {
						b.Fatal(err)
					}
					verdicts, err := Judge(c)
					if err != nil {
						b.Fatal(err)
					}
					if v := verdicts[1]; v.Checker != Exclusion.Name || (v.Status == Fail) != (name == "1 % violated") {
						b.Fatalf("%s: %v %s", v.Checker, v.Status, v.Summary)
					}
				}
				perOp(b, len(h.Ops))
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.Sys)/1e6, "MB-sys")
			})
		}
	}
}

// inProcesses is the plain history with workers in 64 processes, whose clocks are compared.
func inProcesses(n int) *history.History {
	h := synthetic(n)
	h.Processes, h.Bounds.Slack = 64, 100*time.Nanosecond
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Worker >= 0 {
			op.Process = int16(op.Worker)
		}
	}
	return h
}

// crowded is a legal history of a lock with many holders at the same time. Either 40 permits are always taken, or ten
// readers hold the lock, and then a writer.
func crowded(n int, claims history.Claims) *history.History {
	const workers, ttl = 64, time.Second
	h := &history.History{Ops: make([]history.Op, 0, n)}
	h.Claims, h.Workers, h.Processes, h.Keys = claims, workers, 1, 1
	numbers := [workers]uint64{}
	add := func(kind history.Kind, worker int, at time.Duration) *history.Op {
		numbers[worker]++
		h.Ops = append(h.Ops, history.Op{ID: history.ID(uint64(worker+1)<<40 | numbers[worker]), Kind: kind,
			Outcome: history.OK,
			Worker:  int32(worker), Call: at, Return: at + 10, Due: at})
		return &h.Ops[len(h.Ops)-1]
	}
	for v := range n / 2 {
		at, held, permits := time.Duration(v)*100, 4000*time.Nanosecond, uint16(1)
		if claims.Readers {
			if at, held = time.Duration(v/11)*2000+time.Duration(v%11)*20, 1000; v%11 == 10 {
				at, held, permits = at+1200, 100, 0
			}
		}
		a := add(history.Acquire, v%workers, at)
		a.Hold, a.Token, a.TTL, a.Until, a.Permits = a.ID, uint64(a.ID)*0x9e3779b97f4a7c15, ttl, at+ttl, permits
		id := a.ID
		add(history.Release, v%workers, at+held).Hold = id
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// violated is a history over many pages, with the given number of double grants: each has two holders.
func violated(n, keys, violations int) *history.History {
	h := &history.History{Ops: make([]history.Op, 0, n)}
	h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true}
	const workers, ttl = 32, time.Second
	h.Workers, h.Processes, h.Keys = workers, 1, keys
	numbers := [workers]uint64{}
	add := func(kind history.Kind, worker, key int, call, ret time.Duration) *history.Op {
		numbers[worker]++
		h.Ops = append(h.Ops, history.Op{ID: history.ID(uint64(worker+1)<<40 | numbers[worker]), Kind: kind,
			Outcome: history.OK,
			Worker:  int32(worker), Key: int32(key), Call: call, Return: ret, Due: call})
		return &h.Ops[len(h.Ops)-1]
	}
	pairs := n / 4
	for v := range pairs {
		t := time.Duration(v) * 100 * time.Microsecond
		late := time.Duration(40_000) // call of the second grant, after the first one
		if violations > 0 && v%max(pairs/violations, 1) == 0 {
			late = 12_000
		}
		for i, begun := range []time.Duration{t, t + late} {
			a := add(history.Acquire, (2*v+i)%workers, v%keys, begun, begun+3000)
			a.Hold, a.Token, a.TTL, a.Until = a.ID, uint64(a.ID)*0x9e3779b97f4a7c15, ttl, begun+ttl
			add(history.Release, (2*v+i)%workers, v%keys, begun+20_000, begun+23_000).Hold = a.ID
		}
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// hitches pauses the process the given number of times.
func hitches(h *history.History, times int) {
	every := h.Ops[len(h.Ops)-1].Return / time.Duration(times)
	for n := range times {
		at := time.Duration(n) * every
		h.Ops = append(h.Ops, history.Op{ID: history.ID(1<<50 | uint64(n+1)), Kind: history.Gap, Outcome: history.OK,
			Worker: -1, Key: -1,
			Call: at, Return: at + time.Microsecond})
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}

// BenchmarkViolations shows that violations take little time beside the operations, for any number of pages and pauses.
func BenchmarkViolations(b *testing.B) {
	for _, n := range []int{0, 1000, 17_000, -1000} {
		name := strconv.Itoa(n)
		if n < 0 {
			name = "hitches"
		}
		b.Run(name, func(b *testing.B) {
			h := violated(1e6, 1e4, max(n, 0))
			if n < 0 {
				hitches(h, -n)
				n = 0
			}
			for b.Loop() {
				c, err := Prepare(h)
				if err != nil {
					b.Fatal(err)
				}
				verdicts, err := Judge(c)
				if err != nil {
					b.Fatal(err)
				}
				if got := verdicts[1].Violations; verdicts[1].Checker != Exclusion.Name || got < int64(n) ||
					n == 0 && got > 0 {
					b.Fatalf("%d violations of %d: %s", got, n, verdicts[1].Summary)
				}
			}
			perOp(b, len(h.Ops))
		})
	}
}

// lateHolders is the history of one page. All its holders store much later than their deadlines, when many others have
// held the lock, so page views are lost.
func lateHolders(n int, late time.Duration) *history.History {
	h := &history.History{}
	h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true}
	const workers, every = 256, time.Millisecond
	h.Workers, h.Processes, h.Keys = workers, 1, 1
	numbers := [workers]uint64{}
	for v := range n / 3 {
		t := time.Duration(v) * every
		op := func(kind history.Kind, call time.Duration) *history.Op {
			numbers[v%workers]++
			h.Ops = append(h.Ops, history.Op{ID: history.ID(uint64(v%workers+1)<<40 | numbers[v%workers]), Kind: kind,
				Outcome: history.OK,
				Worker:  int32(v % workers), Call: call, Return: call + time.Microsecond})
			return &h.Ops[len(h.Ops)-1]
		}
		a := op(history.Acquire, t)
		a.Hold, a.TTL, a.Until = a.ID, every/2, t+every/2
		id := a.ID
		op(history.Load, t+late-2*time.Microsecond).Hold = id
		store := op(history.Store, t+late)
		store.Hold, store.Value = id, 1
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// refusedWriters is a page with readers that come and go, and with writers that are always refused.
func refusedWriters(n int) *history.History {
	h := &history.History{}
	h.Claims = history.Claims{Excludes: true, Owned: true, Readers: true, Writers: true}
	const writers = 1000
	h.Workers, h.Processes, h.Keys = writers+2, 1, 1
	numbers := make([]uint64, h.Workers)
	op := func(worker int, kind history.Kind, call time.Duration) *history.Op {
		numbers[worker]++
		h.Ops = append(h.Ops, history.Op{ID: history.ID(uint64(worker+1)<<40 | numbers[worker]), Kind: kind,
			Outcome: history.OK,
			Worker:  int32(worker), Call: call, Return: call + time.Microsecond})
		return &h.Ops[len(h.Ops)-1]
	}
	for v := range n / 3 {
		t := time.Duration(v) * 100 * time.Microsecond
		a := op(writers+v%2, history.Acquire, t)
		a.Hold, a.Permits = a.ID, 1
		id := a.ID
		w := op(v%writers, history.Acquire, t+3*time.Microsecond)
		w.Hold, w.Outcome, w.Reason = w.ID, history.Failed, history.Busy
		op(writers+v%2, history.Release, t+150*time.Microsecond).Hold = id
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	return h
}

// faulty adds the given number of faults, which are healed before the first request.
func faulty(h *history.History, faults int) {
	for n := range faults {
		h.Faults = append(h.Faults, history.Injection{
			Name: "mine", Effect: history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys},
		})
		h.Ops = append(h.Ops, history.Op{ID: history.ID(1<<51 | uint64(n+1)), Kind: history.Fault, Outcome: history.OK,
			Worker: -1, Key: -1, Value: int64(n)})
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}

// heldForEver is a page whose lock one worker holds to the end. Meanwhile the lock is granted to another worker again
// and again.
func heldForEver(n int) *history.History {
	s := newScript()
	s.Sites = 1
	s.acquire(1, 0, 1, time.Duration(20*n))
	for at := time.Duration(10); at < time.Duration(5*n); at += 10 {
		s.release(s.acquire(2, at, at+1, 300), at+5, at+6)
	}
	return &s.History
}

// BenchmarkCorners judges histories that once took quadratic time. The time for each operation must not grow with n.
func BenchmarkCorners(b *testing.B) {
	for name, make := range map[string]func(n int) *history.History{
		"late": func(n int) *history.History { return lateHolders(n, 100*time.Millisecond) },
		"late and paused": func(n int) *history.History {
			h := lateHolders(n, 3*time.Millisecond)
			hitches(h, n/100)
			return h
		},
		"violations and faults": func(n int) *history.History {
			h := violated(n, 100, n/100)
			faulty(h, n/100)
			return h
		},
		"starving writers": refusedWriters,
		"held for ever":    heldForEver,
	} {
		for _, n := range []int{100_000, 400_000} {
			b.Run(name+"/"+strconv.Itoa(n), func(b *testing.B) {
				h := make(n)
				for b.Loop() {
					c, err := Prepare(h)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := Judge(c); err != nil {
						b.Fatal(err)
					}
				}
				perOp(b, len(h.Ops))
			})
		}
	}
}

// BenchmarkDeadPages judges pages whose lock no worker ever gets, while one worker sleeps at each.
func BenchmarkDeadPages(b *testing.B) {
	h := violated(1e6, 1e4, 0)
	end := h.Ops[len(h.Ops)-1].Return
	const asleep = 10_000
	for n := range asleep {
		op := history.Op{Kind: history.Acquire, Outcome: history.Failed, Reason: history.Busy, Worker: int32(40 + n),
			Key: int32(10_000 + n), Call: 1, Return: 2}
		op.ID = history.ID(uint64(op.Worker+1)<<40 | 1)
		op.Hold = op.ID
		h.Ops = append(h.Ops, op)
		op.ID, op.Hold, op.Kind, op.Outcome, op.Return = op.ID+1, 0, history.End, history.OK, end
		h.Ops = append(h.Ops, op)
	}
	slices.SortStableFunc(h.Ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	for b.Loop() {
		c, err := Prepare(h)
		if err != nil {
			b.Fatal(err)
		}
		if v := judgeLiveness(c); v.Violations != asleep {
			b.Fatalf("%d violations: %s", v.Violations, v.Summary)
		}
	}
	perOp(b, len(h.Ops))
}

func perOp(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/history-op")
}

// contended is one page for which all workers try at the same time. Each grant is called as soon as the visit before
// it has begun.
func contended(n int) *history.History {
	h := &history.History{}
	h.Claims = history.Claims{Excludes: true, Owned: true}
	h.Processes = 1
	const workers = 16
	numbers := [workers]uint64{}
	for v := range n / 2 {
		worker := v % workers
		t := time.Duration(v) * 100
		call := max(t-60*workers/10, 0)
		numbers[worker]++
		id := history.ID(uint64(worker+1)<<40 | numbers[worker])
		h.Ops = append(h.Ops, history.Op{ID: id, Hold: id, Worker: int32(worker), Kind: history.Acquire,
			Outcome: history.OK,
			Call:    call, Return: t + 10, Until: history.Forever})
		numbers[worker]++
		h.Ops = append(h.Ops, history.Op{ID: history.ID(uint64(worker+1)<<40 | numbers[worker]), Hold: id,
			Worker: int32(worker),
			Kind:   history.Release, Outcome: history.OK, Call: t + 50, Return: t + 90})
	}
	return h
}

// BenchmarkAgainstPorcupine judges the same contended history with the exact checker and with porcupine.
func BenchmarkAgainstPorcupine(b *testing.B) {
	for _, n := range []int{5000, 50_000} {
		c, err := Prepare(contended(n))
		if err != nil {
			b.Fatal(err)
		}
		s := newSweeper(c)
		var ours, theirs time.Duration
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				begin := time.Now()
				s.losses(c.byKey[0], true, func(pair) { b.Fatal("lost") })
				s.beliefs(c.byKey[0], func(pair, bool) { b.Fatal("two believe") })
				ours += time.Since(begin)
				begin = time.Now()
				if !porcupine.CheckOperations(leaseModel, s.encode(c.byKey[0])) {
					b.Fatal("porcupine disagrees")
				}
				theirs += time.Since(begin)
			}
			b.ReportMetric(float64(theirs)/float64(ours), "times-faster")
			b.ReportMetric(ours.Seconds()*1e3/float64(b.N), "ms-ours")
			b.ReportMetric(theirs.Seconds()*1e3/float64(b.N), "ms-porcupine")
		})
	}
}

// BenchmarkLong judges files that are as long as the memory, or longer. Run it with CHECKER_BENCH=100000000 go test
// ./checker -run '^$' -bench Long -benchtime 1x. With LONG_FILE=file it keeps the file, which can then be judged under
// a memory limit.
func BenchmarkLong(b *testing.B) {
	for _, n := range sizes()[2:] {
		path := cmp.Or(os.Getenv("LONG_FILE"), filepath.Join(b.TempDir(), "history.bin"))
		writeLong(b, path, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				verdicts, err := JudgeFile(path)
				if err != nil || verdicts[1].Status != Pass {
					b.Fatal(verdicts, err)
				}
			}
			perOp(b, n)
		})
	}
}

func writeLong(b *testing.B, path string, n int) {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w, err := history.Create(f, synthesize(0, func(*history.Op) {}))
	synthesize(n, func(op *history.Op) { err = errors.Join(err, w.Add(op)) })
	if err = errors.Join(err, w.Close(""), f.Close()); err != nil {
		b.Fatal(err)
	}
}
