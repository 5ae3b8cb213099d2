// Command waiting compares how workers wait for one hot page, and what that costs, for all strategies in one run. It
// prints the results in the format of Go's benchmarks, and saves them with -keep.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/crew"
	"hammerlock/internal/harness"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/tools/kept"
	"hammerlock/topologies"
	"hammerlock/workload"
)

func main() {
	ctx := context.Background()
	known := crew.Catalogue{Locks: withBound, Counters: workload.AllCounters}
	os.Exit(crew.Main(ctx, known, func() int {
		keep := flag.Bool("keep", false, "write results/baselines/waiting.json")
		short := flag.Bool("short", false, "one short round of each")
		flag.Parse()
		if err := waiting(ctx, *keep, *short); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return 1
		}
		return 0
	}))
}

// measuring is one comparison. Its servers stay up between runs.
type measuring struct {
	shape
	warm harness.Warm
	dir  string
}

func waiting(ctx context.Context, keep, short bool) (err error) {
	m := &measuring{shape: whole}
	if short {
		m.shape = brief
	}
	if m.dir, err = os.MkdirTemp("", "waiting-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.warm.Close(), os.RemoveAll(m.dir)) }()
	record, err := m.compare(ctx)
	if err != nil || !keep {
		return err
	}
	if record.Made, err = kept.Now(ctx); err != nil {
		return err
	}
	return record.Keep()
}

// shape is the size of a comparison. Each round reverses the order of the strategies, so that a disturbance of the
// machine does not hit one of them alone.
type shape struct {
	rounds         int
	window, warmup time.Duration
}

var (
	whole = shape{2, time.Second, 250 * time.Millisecond}
	brief = shape{1, whole.window / 2, whole.warmup / 2} // enough to see errors
)

// job is the run of a crowd that waits for one page. The patience is long enough for all.
func (m *measuring) job(ctx context.Context, s kept.Strategy, c kept.Crowd, round int) (*harness.Job, error) {
	lock, ok := find(s.Lock)
	topology, ok2 := topologies.Find("single")
	if !ok || !ok2 {
		return nil, fmt.Errorf("no lock %s", s.Lock)
	}
	p := harness.Default()
	p.Topologies, p.Locks, p.Out, p.Processes = []topologies.Spec{topology}, []locks.Spec{lock}, m.dir, c.Processes
	p.Warmup, p.Duration = m.warmup, m.window
	w := &p.Workload
	w.Workers, w.Keys, w.Hold, w.Wait, w.Seed = c.Workers, 1, c.Hold, time.Minute, uint64(round+1)
	if s.Backoff > 0 {
		w.Retry = s.Backoff
	}
	j, err := p.Check(ctx, nil)
	if err != nil {
		return nil, err
	}
	j.Warm = &m.warm
	return j, nil
}

// crowd runs one round of a strategy. Lost page views are an error. A run with failed visits is repeated up to three
// times, because a busy machine may delay answers. Failed tries of a library are only counted, because the visit goes
// on.
func (m *measuring) crowd(ctx context.Context, s kept.Strategy, c kept.Crowd, round int) (*results.Run, error) {
	var wrong string
	for range 3 {
		runtime.GC()
		j, err := m.job(ctx, s, c, round)
		if err != nil {
			return nil, err
		}
		runs, err := j.Run(ctx, ctx)
		if err != nil {
			return nil, err
		}
		r := &runs[0]
		status, text := r.Safety()
		switch v := r.Visits; {
		case status == checker.Fail:
			return nil, errors.New(text)
		case status != checker.Pass:
			wrong = text
		case v.Done == 0 || v.Failed+v.Unknown+v.Timeout+v.Skipped > 0:
			wrong = fmt.Sprintf("not all went well: %+v, %v", v, r.Errors)
		case r.Cost.Commands == nil:
			wrong = "the server did not say what it executed"
		default:
			return r, nil
		}
	}
	return nil, errors.New(wrong)
}

// average averages the rounds.
func (m *measuring) average(s kept.Strategy, c kept.Crowd, rounds []*results.Run) kept.Waited {
	w := kept.Waited{Strategy: s, Crowd: c, Woken: map[string]float64{}, Errors: map[string]int64{}}
	n := float64(len(rounds))
	least, most := rounds[0].Throughput, rounds[0].Throughput
	var grants float64
	var p99s []time.Duration
	for _, r := range rounds {
		w.Visits += r.Throughput / n
		least, most = min(least, r.Throughput), max(most, r.Throughput)
		if p99 := r.Waiting.RandomWaiter.P99; p99 != nil {
			p99s = append(p99s, time.Duration(*p99))
		}
		w.Jain += r.Fairness.Jain / n
		w.Starving += float64(r.Fairness.Starving) / n
		w.Commands += *r.Cost.Commands / n
		for what, n := range r.Errors {
			w.Errors[what] += n
		}
		for _, x := range r.Waiting.Woken {
			w.Woken[x.By] += float64(x.Grants)
			grants += float64(x.Grants)
		}
	}
	w.Spread = (most - least) / w.Visits
	for _, p99 := range p99s {
		w.P99 += p99 / time.Duration(len(p99s))
		// A wait as long as the window may have begun before it, or end after it.
		w.AtLeast = w.AtLeast || p99 > m.window*9/10
	}
	for by := range w.Woken {
		w.Woken[by] /= grants
	}
	return w
}

// compare compares all strategies for each crowd, in turns on one server, and prints each result.
func (m *measuring) compare(ctx context.Context) (*kept.Waiting, error) {
	record := &kept.Waiting{Window: m.window, Rounds: m.rounds}
	for _, c := range kept.Crowds {
		rounds := map[string][]*results.Run{}
		for round := range m.rounds {
			turn := slices.Clone(kept.Strategies)
			if round%2 == 1 {
				slices.Reverse(turn)
			}
			for _, s := range turn {
				r, err := m.crowd(ctx, s, c, round)
				if err != nil {
					return nil, fmt.Errorf("%s, %+v: %w", s.Name(), c, err)
				}
				rounds[s.Name()] = append(rounds[s.Name()], r)
				record.Server = r.Settings["server"]
			}
		}
		for _, s := range kept.Strategies {
			w := m.average(s, c, rounds[s.Name()])
			record.Rows = append(record.Rows, w)
			fmt.Println(line(w))
		}
	}
	return record, nil
}

// line is a result in the format of Go's benchmarks, for .ci/perf.awk.
func line(w kept.Waited) string {
	text := fmt.Sprintf("BenchmarkWaiting/workers=%d:hold=%v:processes=%d/%s 1", w.Workers, w.Hold, w.Processes,
		w.Name())
	add := func(value float64, unit string) { text += fmt.Sprintf(" %g %s", value, unit) }
	add(1e9/w.Visits, "ns/op")
	add(w.Visits, "visits/s")
	add(100*w.Spread, "%-spread")
	if w.P99 > 0 {
		add(float64(w.P99), "random-p99-ns")
	}
	if w.AtLeast {
		add(1, "at-least")
	}
	add(w.Jain, "jain")
	add(w.Starving, "starving")
	add(w.Commands, "commands/visit")
	for by, share := range w.Woken {
		add(100*share, "%-"+by)
	}
	var errors int64
	for _, n := range w.Errors {
		errors += n
	}
	add(float64(errors), "errors")
	return text
}
