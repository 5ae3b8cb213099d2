package harness

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/checker"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// waitingFile holds what was measured last: make waiting writes it, the README shows it.
var waitingFile = filepath.Join("..", "..", "results", "baselines", "waiting.json")

// strategy is a way to wait for a lock: the lock's own, or the worker's with a backoff.
type strategy struct {
	Lock    string        `json:"lock"`
	Backoff time.Duration `json:"backoff_ns,omitempty"` // of a lock that leaves the waiting to its user
	Waits   string        `json:"waits"`                // how, for people
}

func (s strategy) name() string {
	if s.Backoff == 0 {
		return s.Lock
	}
	return s.Lock + "," + s.Backoff.String()
}

var strategies = []strategy{
	{"lease", time.Millisecond, "tries again after about 1 ms"},
	{"lease", 50 * time.Millisecond, "tries again after about 50 ms"},
	{"spin", 0, "tries again after up to 1 ms, doubling to 128 ms"},
	{"redisson", 0, "is sent a message, one in a process"},
	{"fair", 0, "stands in a queue, is sent a message when it is its turn"},
	{"redsync", 0, "tries again after 50 to 250 ms"},
	{"redislock", 50 * time.Millisecond, "tries again after about 50 ms"},
	{"rueidislock", 0, "is sent an invalidation of the lock's keys"},
}

// How the strategies are compared: in rounds, each the other way round, so that what the machine does meanwhile does not
// hit one of them alone.
const (
	waitingRounds = 2
	waitingWindow = 6 * time.Second
	waitingWarmup = time.Second
	waitingHold   = 2 * time.Millisecond
)

var waitingCrowds = []int{32, 256}

// waitingShape is how long that takes: with -short, which is make perf without PERF=full, long enough to see what is wrong.
func waitingShape() (rounds int, window, warmup time.Duration) {
	if testing.Short() {
		return 1, waitingWindow / 3, waitingWarmup / 2
	}
	return waitingRounds, waitingWindow, waitingWarmup
}

// waited is what a crowd had of a strategy: means of the rounds.
type waited struct {
	strategy
	Workers  int                `json:"workers"`
	Visits   float64            `json:"visits_per_s"`
	Spread   float64            `json:"visits_spread"`        // by this share of the mean the rounds' visits differ
	P99      time.Duration      `json:"random_waiter_p99_ns"` // 0 = there were too few waits for it
	AtLeast  bool               `json:"at_least,omitempty"`   // it was too long to be seen whole
	Jain     float64            `json:"jain"`
	Starving float64            `json:"starving"` // workers, of these
	Commands float64            `json:"commands"` // a visit
	Woken    map[string]float64 `json:"woken"`    // shares of the grants
	Errors   map[string]int64   `json:"errors,omitempty"`
}

// waitingRecord is the file.
type waitingRecord struct {
	Cores  int           `json:"cores"`
	Server string        `json:"server"`
	Hold   time.Duration `json:"hold_ns"`
	Window time.Duration `json:"measured_ns"`
	Rounds int           `json:"rounds"`
	Rows   []waited      `json:"rows"`
}

// waitingJob lets a crowd wait for one page. Nobody gives up.
func waitingJob(b *testing.B, warm *Warm, s strategy, workers, round int) *Job {
	_, window, warmup := waitingShape()
	j := job(b, func(p *Plan) {
		w := &p.Workload
		p.Locks, p.Warmup, p.Duration = lockNamed(s.Lock), warmup, window
		w.Workers, w.Keys, w.Hold, w.Wait, w.Seed = workers, 1, waitingHold, time.Minute, uint64(round+1)
		if s.Backoff > 0 {
			w.Retry = s.Backoff
		}
	})
	j.Warm = warm
	return j
}

// crowd runs one round of a strategy. A page view that was lost and a visit that came to nothing fail the benchmark; a
// try that a library called off is counted, for the visit goes on.
func crowd(b *testing.B, warm *Warm, s strategy, workers, round int) *results.Run {
	b.Helper()
	j := waitingJob(b, warm, s, workers, round)
	runtime.GC()
	runs, err := j.Run(b.Context(), b.Context())
	if err != nil {
		b.Fatalf("%s, %d workers: %v", s.name(), workers, err)
	}
	r := &runs[0]
	if status, text := r.Safety(); status != checker.Pass {
		b.Errorf("%s, %d workers: %s: %s", s.name(), workers, status, text)
	}
	if v := r.Visits; v.Done == 0 || v.Failed+v.Unknown+v.Timeout+v.Skipped > 0 {
		b.Errorf("%s, %d workers: not all went well: %+v, %v", s.name(), workers, v, r.Errors)
	}
	if r.Cost.Commands == nil {
		b.Fatalf("%s, %d workers: the server did not say what it executed", s.name(), workers)
	}
	return r
}

// average makes one of the rounds.
func average(s strategy, workers int, rounds []*results.Run) waited {
	_, window, _ := waitingShape()
	w := waited{strategy: s, Workers: workers, Woken: map[string]float64{}, Errors: map[string]int64{}}
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
		// A wait that is as long as the window was there before it, or is there after it.
		w.AtLeast = w.AtLeast || p99 > window*9/10
	}
	for by := range w.Woken {
		w.Woken[by] /= grants
	}
	return w
}

// BenchmarkWaiting compares how workers wait for one hot page, and what that costs: all strategies and libraries in one
// run, in turns on one server.
func BenchmarkWaiting(b *testing.B) {
	var warm Warm
	defer func() {
		if err := warm.Close(); err != nil {
			b.Error(err)
		}
	}()
	n, window, _ := waitingShape()
	record := waitingRecord{Cores: runtime.NumCPU(), Hold: waitingHold, Window: window, Rounds: n}
	for _, workers := range waitingCrowds {
		rounds := map[string][]*results.Run{}
		for round := range n {
			turn := slices.Clone(strategies)
			if round%2 == 1 {
				slices.Reverse(turn)
			}
			for _, s := range turn {
				r := crowd(b, &warm, s, workers, round)
				rounds[s.name()] = append(rounds[s.name()], r)
				record.Server = r.Settings["server"]
			}
		}
		for _, s := range strategies {
			w := average(s, workers, rounds[s.name()])
			record.Rows = append(record.Rows, w)
			b.Run(fmt.Sprintf("workers=%d/%s", workers, s.name()), w.report)
		}
	}
	if *update && !b.Failed() {
		record.keep(b)
	}
}

// report hands on what was measured before: the strategies had their turns together.
func (w waited) report(b *testing.B) {
	b.ReportMetric(1e9/w.Visits, "ns/op")
	b.ReportMetric(w.Visits, "visits/s")
	b.ReportMetric(100*w.Spread, "%-spread")
	if w.P99 > 0 {
		b.ReportMetric(float64(w.P99), "random-p99-ns")
	}
	if w.AtLeast {
		b.ReportMetric(1, "at-least")
	}
	b.ReportMetric(w.Jain, "jain")
	b.ReportMetric(w.Starving, "starving")
	b.ReportMetric(w.Commands, "commands/visit")
	for by, share := range w.Woken {
		b.ReportMetric(100*share, "%-"+by)
	}
	var errors int64
	for _, n := range w.Errors {
		errors += n
	}
	b.ReportMetric(float64(errors), "errors")
}

func (r *waitingRecord) keep(b *testing.B) {
	b.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(waitingFile, append(text, '\n'), 0o644); err != nil {
		b.Fatal(err)
	}
}

// TestEveryWaiterIsCompared looks for locks that wait by themselves and are not among the strategies.
func TestEveryWaiterIsCompared(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nobody connects
	defer func() { _ = client.Close() }()
	waiters := 0
	for _, spec := range locks.All {
		lock, err := spec.Open(locks.Env{
			Sites: []redis.UniversalClient{client}, Places: []*topologies.Site{new(topologies.Site)}, Process: &locks.Process{},
			Rand: rand.New(rand.NewPCG(1, 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, waits := lock.(locks.Waiter); waits {
			waiters++
			library, _, _ := strings.Cut(spec.Name, "-") // with another option it waits in the same way
			if !slices.ContainsFunc(strategies, func(s strategy) bool { return s.Lock == library && s.Backoff == 0 }) {
				t.Errorf("%s waits by itself and is not compared", spec.Name)
			}
		}
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
	if waiters == 0 {
		t.Error("no lock waits by itself")
	}
}

// TestWaitingIsKeptAsItIsMeasured finds a kept file that is of other strategies or conditions.
func TestWaitingIsKeptAsItIsMeasured(t *testing.T) {
	text, err := os.ReadFile(waitingFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept waitingRecord
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Hold != waitingHold || kept.Window != waitingWindow || kept.Rounds != waitingRounds {
		t.Errorf("it was measured otherwise: make waiting")
	}
	var want, got []string
	for _, workers := range waitingCrowds {
		for _, s := range strategies {
			want = append(want, fmt.Sprintf("%d workers, %+v", workers, s))
		}
	}
	for _, w := range kept.Rows {
		got = append(got, fmt.Sprintf("%d workers, %+v", w.Workers, w.strategy))
		if w.Visits <= 0 || w.Jain <= 0 || w.Commands <= 0 || len(w.Woken) == 0 {
			t.Errorf("%d workers, %s: not measured: %+v", w.Workers, w.name(), w)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: make waiting", got, want)
	}
}
