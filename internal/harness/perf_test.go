package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// slice is the length of one side's turn. The work at the start and end of a run is small in comparison. The speed of
// machines varies, so only ratios of adjacent slices are meaningful.
const slice = 2 * time.Second

var crowds = []int{1, 16, 64}

// arena is a deployment with a client for workers without the suite.
type arena struct {
	*Run
	lock redis.UniversalClient
}

// perfStage starts a deployment with so many pages that no worker waits for a lock, and a lease to guard them.
func perfStage(b *testing.B, workers int, verify bool, change ...func(*Plan)) *arena {
	b.Helper()
	a := perfArena(b, workers, func(p *Plan) {
		p.Verify = verify
		for _, f := range change {
			f(p)
		}
	})
	bareVisits(b, a, workers) // connections and scripts exist from now on
	suiteVisits(b, a, workers)
	return a
}

func perfArena(b *testing.B, workers int, change func(*Plan)) *arena {
	b.Helper()
	j := job(b, func(p *Plan) {
		p.Workload.Workers, p.Workload.Keys, p.Workload.Hold = workers, 10_000, 0
		p.Warmup, p.Duration = 0, slice
		change(p)
	})
	p, err := j.Prepare(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	a := &arena{Run: p, lock: p.deployment.Topology.Sites[0].Client(topologies.ClientOptions{})}
	b.Cleanup(func() {
		if err := errors.Join(a.lock.Close(), p.Close()); err != nil {
			b.Error(err)
		}
	})
	return a
}

// observe begins to observe a run. The returned function ends that, and deletes the saved data.
func (s *arena) observe(b *testing.B) (x *Run, end func()) {
	b.Helper()
	once := *s.Run
	x, once.run = &once, s.describe(time.Now())
	var err error
	if x.folder, err = results.OpenFolder(s.job.Plan.Out, rand.Text()); err != nil {
		b.Fatal(err)
	}
	if err = x.begin(); err != nil {
		b.Fatal(err)
	}
	over := x.background(b.Context())
	return x, func() {
		over()
		if err := errors.Join(x.record.Close("", false, nil), x.folder.Discard()); err != nil {
			b.Fatal(err)
		}
	}
}

// suiteVisits lets the suite work for a slice, and returns its visits per second.
func suiteVisits(b *testing.B, s *arena, workers int) float64 {
	b.Helper()
	runtime.GC()
	_, end := s.observe(b)
	start := time.Now()
	due, err := s.deployment.Crew.Run(b.Context(), b.Context())
	took := time.Since(start)
	if end(); err != nil {
		b.Fatal(err)
	}
	return float64(due.Begun) / took.Seconds()
}

// bareVisits sends the same commands for a slice, from a bare loop.
func bareVisits(b *testing.B, s *arena, workers int) float64 {
	b.Helper()
	var total atomic.Int64
	var wg sync.WaitGroup
	runtime.GC()
	start := time.Now()
	for i := range workers {
		wg.Go(func() {
			n := int64(0)
			for r := mathrand.New(mathrand.NewPCG(1, uint64(i))); time.Since(start) < slice; n++ {
				if err := bareVisit(b.Context(), s, s.deployment.Pages[r.IntN(len(s.deployment.Pages))]); err != nil {
					b.Error(err)
					return
				}
			}
			total.Add(n)
		})
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds()
}

var bareRelease = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

func bareVisit(ctx context.Context, s *arena, page workload.Page) error {
	lock, store, token := s.lock, s.deployment.CounterClient(), rand.Text()
	for {
		err := lock.SetArgs(ctx, page.Lock, token, redis.SetArgs{Mode: "NX", TTL: 5 * time.Second}).Err()
		if err == nil {
			break
		}
		if !errors.Is(err, redis.Nil) {
			return err
		}
		<-time.After(time.Millisecond)
	}
	views, err := store.Get(ctx, page.Views).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	count, writer, _ := strings.Cut(views, " ")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil && count != "" {
		return err
	}
	if err := store.Set(ctx, page.Views, strconv.FormatInt(n+1, 10)+" "+cmp.Or(writer, "1"), 0).Err(); err != nil {
		return err
	}
	return bareRelease.Run(ctx, lock, []string{page.Lock}, token).Err()
}

// BenchmarkVisit measures a visit through the suite, BenchmarkBareVisit the same commands without it.
func BenchmarkVisit(b *testing.B)     { benchmarkVisits(b, suiteVisits) }
func BenchmarkBareVisit(b *testing.B) { benchmarkVisits(b, bareVisits) }

func benchmarkVisits(b *testing.B, visits func(*testing.B, *arena, int) float64) {
	for _, workers := range crowds {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			s := perfStage(b, workers, false)
			var sum float64
			n := 0
			for b.Loop() {
				sum += visits(b, s, workers)
				n++
			}
			b.ReportMetric(sum/float64(n), "visits/s")
			b.ReportMetric(1e9*float64(n)/sum, "ns/op")
		})
	}
}

// BenchmarkOverhead measures the throughput of the suite relative to that of the bare Redis commands. The order of
// the turns is bare, suite, suite, bare. It also reports the standard error of the ratio.
func BenchmarkOverhead(b *testing.B) {
	for _, workers := range crowds {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			t := newTurns()
			s := perfArena(b, workers, func(p *Plan) { p.Locks, p.Duration = []locks.Spec{t.lock()}, time.Hour })
			defer t.start(b, s, workers)()
			for range 4 { // make connections, and load scripts
				t.give(bareSide)
				t.give(suiteSide)
			}
			var suite, bare float64
			var ratios []float64
			for b.Loop() {
				first := t.give(bareSide)
				own := t.give(suiteSide) + t.give(suiteSide)
				both := first + t.give(bareSide)
				suite, bare = suite+own, bare+both
				ratios = append(ratios, own/both)
			}
			b.ReportMetric(100*suite/bare, "%-of-bare")
			b.ReportMetric(bare/float64(2*len(ratios)), "bare-visits/s")
			b.ReportMetric(100*standardError(ratios), "%-error")
		})
	}
}

// standardError returns the standard error of the mean. A single number has none.
func standardError(x []float64) float64 {
	var mean, squares float64
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64((len(x)-1)*len(x)))
}

// BenchmarkVerify measures the throughput with every operation recorded for a judge, relative to that without. The
// two sides take turns. No fault is injected.
func BenchmarkVerify(b *testing.B) {
	for _, workers := range crowds {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			bench, verify := perfStage(b, workers, false), perfStage(b, workers, true)
			var without, with float64
			for b.Loop() {
				without += suiteVisits(b, bench, workers)
				with += suiteVisits(b, verify, workers)
				with += suiteVisits(b, verify, workers)
				without += suiteVisits(b, bench, workers)
			}
			b.ReportMetric(100*with/without, "%-of-bench")
		})
	}
}

// BenchmarkScenarios measures the time that all scenarios of the lock "lease" take on a single server, both
// sequentially and in parallel. It also measures the CPU time of the suite and its servers.
func BenchmarkScenarios(b *testing.B) {
	for name, jobs := range map[string]int{"one after the other": 1, "side by side": 0} {
		b.Run(name, func(b *testing.B) {
			cpu := cpuTime(b)
			for b.Loop() {
				j := job(b, func(p *Plan) {
					p.Verify, p.Jobs, p.Topologies, p.Scenarios, p.Faults = true, jobs, topologies.All[:1],
						scenarios.All, []string{"auto"}
				})
				j.Warm = new(Warm)
				runs, err := j.Run(b.Context(), b.Context())
				if err := errors.Join(err, j.Warm.Close()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(runs)), "runs")
			}
			b.ReportMetric((cpuTime(b)-cpu).Seconds()/float64(b.N), "cpu-s")
		})
	}
}

// cpuTime returns the CPU time of this process, and of its children that have ended.
func cpuTime(b *testing.B) (all time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}
