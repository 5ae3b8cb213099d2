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
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/topologies"
)

// waitingFile holds what was measured last: make waiting writes it, docs/LOCKS.md shows it.
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
	{"handoff", 0, "stands in a queue, is sent the lock itself"},
	{"handoff-cohort", 0, "is handed the lock inside its process, up to 32 times in a row"},
	{blpop.Name, 0, "bound, no lock: the server blocks who waits, without lease and fence"},
}

// crowded is what a crowd is put to.
type crowded struct {
	Workers   int           `json:"workers"`
	Processes int           `json:"processes"`
	Hold      time.Duration `json:"hold_ns"`
}

var waitingCrowds = func() (list []crowded) {
	for _, processes := range []int{1, 2, 8} {
		for _, workers := range []int{32, 256} {
			for _, hold := range []time.Duration{0, time.Millisecond} {
				list = append(list, crowded{workers, processes, hold})
			}
		}
	}
	return list
}()

// How the strategies are compared: in rounds, each the other way round, so that what the machine does meanwhile does not
// hit one of them alone.
const (
	waitingRounds = 2
	waitingWindow = time.Second
	waitingWarmup = 250 * time.Millisecond
)

// waitingShape is how long that takes: with -short, which is make perf without PERF=full, long enough to see what is wrong.
func waitingShape() (rounds int, window, warmup time.Duration) {
	if testing.Short() {
		return 1, waitingWindow / 2, waitingWarmup / 2
	}
	return waitingRounds, waitingWindow, waitingWarmup
}

// waited is what a crowd had of a strategy: means of the rounds.
type waited struct {
	strategy
	crowded
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
	Window time.Duration `json:"measured_ns"`
	Rounds int           `json:"rounds"`
	Rows   []waited      `json:"rows"`
}

// waitingJob lets a crowd wait for one page. Nobody gives up.
func waitingJob(b *testing.B, warm *Warm, s strategy, c crowded, round int) *Job {
	_, window, warmup := waitingShape()
	j := job(b, func(p *Plan) {
		w := &p.Workload
		p.Locks, p.Warmup, p.Duration, p.Processes = all(findOrBound, []string{s.Lock}), warmup, window, c.Processes
		w.Workers, w.Keys, w.Hold, w.Wait, w.Seed = c.Workers, 1, c.Hold, time.Minute, uint64(round+1)
		if s.Backoff > 0 {
			w.Retry = s.Backoff
		}
	})
	j.Warm = warm
	return j
}

// crowd runs one round of a strategy. A page view that was lost and a visit that came to nothing fail the benchmark, if that happens
// again and again: a busy machine may keep somebody from an answer. A try that a library called off is counted, for the visit goes on.
func crowd(b *testing.B, warm *Warm, s strategy, c crowded, round int) *results.Run {
	b.Helper()
	var wrong string
	for range 3 {
		runtime.GC()
		runs, err := waitingJob(b, warm, s, c, round).Run(b.Context(), b.Context())
		if err != nil {
			b.Fatalf("%s, %+v: %v", s.name(), c, err)
		}
		r := &runs[0]
		status, text := r.Safety()
		switch v := r.Visits; {
		case status == checker.Fail:
			b.Fatalf("%s, %+v: %s", s.name(), c, text)
		case status != checker.Pass:
			wrong = text
		case v.Done == 0 || v.Failed+v.Unknown+v.Timeout+v.Skipped > 0:
			wrong = fmt.Sprintf("not all went well: %+v, %v", v, r.Errors)
		case r.Cost.Commands == nil:
			wrong = "the server did not say what it executed"
		default:
			return r
		}
	}
	b.Fatalf("%s, %+v: %s", s.name(), c, wrong)
	return nil
}

// average makes one of the rounds.
func average(s strategy, c crowded, rounds []*results.Run) waited {
	_, window, _ := waitingShape()
	w := waited{strategy: s, crowded: c, Woken: map[string]float64{}, Errors: map[string]int64{}}
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
	record := waitingRecord{Cores: runtime.NumCPU(), Window: window, Rounds: n}
	for _, c := range waitingCrowds {
		rounds := map[string][]*results.Run{}
		for round := range n {
			turn := slices.Clone(strategies)
			if round%2 == 1 {
				slices.Reverse(turn)
			}
			for _, s := range turn {
				r := crowd(b, &warm, s, c, round)
				rounds[s.name()] = append(rounds[s.name()], r)
				record.Server = r.Settings["server"]
			}
		}
		for _, s := range strategies {
			w := average(s, c, rounds[s.name()])
			record.Rows = append(record.Rows, w)
			b.Run(fmt.Sprintf("workers=%d:hold=%v:processes=%d/%s", c.Workers, c.Hold, c.Processes, s.name()), w.report)
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
	for _, spec := range known.Locks {
		lock, err := spec.Open(locks.Env{
			Sites: []redis.UniversalClient{client}, Places: []*topologies.Site{new(topologies.Site)}, Process: &locks.Process{},
			Rand: rand.New(rand.NewPCG(1, 1)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, waits := lock.(locks.Waiter); waits && spec.Broken == "" && !spec.Claims.Readers { // with readers it is another race
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
	if kept.Window != waitingWindow || kept.Rounds != waitingRounds {
		t.Errorf("it was measured otherwise: make waiting")
	}
	var want, got []string
	for _, c := range waitingCrowds {
		for _, s := range strategies {
			want = append(want, fmt.Sprintf("%+v, %+v", c, s))
		}
	}
	for _, w := range kept.Rows {
		got = append(got, fmt.Sprintf("%+v, %+v", w.crowded, w.strategy))
		if w.Visits <= 0 || w.Jain <= 0 || w.Commands <= 0 || len(w.Woken) == 0 {
			t.Errorf("%+v, %s: not measured", w.crowded, w.name())
		}
	}
	left := want // a crowd that has no rows was not measured yet
	for _, row := range got {
		i := slices.Index(left, row)
		if i < 0 {
			t.Fatalf("%s is kept, and not measured any more, or in another order: make waiting", row)
		}
		left = left[i+1:]
	}
	if len(got) < len(strategies) {
		t.Errorf("%d rows are kept, and there are %d ways to wait: make waiting", len(got), len(strategies))
	}
}
