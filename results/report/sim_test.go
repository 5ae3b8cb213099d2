package report

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/measure"
	"hammerlock/results"
)

// crowd makes the history of an invented run. Its workers hold the same lock in turn. Now and then an intruder also
// gets the lock while another worker holds it.
type crowd struct {
	workers int
	visits  int
	intrude int // an intruder comes once in this many visits; 0 = no intruders
	seed    uint64
}

// play calls each with the operations, five for each visit, in the order of their returns.
func (c crowd) play(each func(*history.Op)) error {
	random := rand.New(rand.NewPCG(c.seed, 1))
	idle := make([]time.Duration, c.workers) // since when each worker waits
	numbers := make([]uint64, c.workers)
	at := time.Millisecond
	var value int64
	var batch []history.Op
	visit := func(w int, grant, hold time.Duration) time.Duration {
		id := func() history.ID { numbers[w]++; return history.ID(uint64(w+1)<<40 | numbers[w]) }
		value++
		op := history.Op{Worker: int32(w), Outcome: history.OK, Due: idle[w]}
		acquire := op
		acquire.ID, acquire.Kind, acquire.Call, acquire.Return = id(), history.Acquire, idle[w]+1, grant
		acquire.Hold, acquire.Token, acquire.TTL, acquire.Until = acquire.ID, uint64(acquire.ID), time.Second,
			grant+time.Second
		batch = append(batch, acquire)
		end := grant + hold
		add := func(kind history.Kind, call, back time.Duration) {
			o := op
			o.ID, o.Kind, o.Hold, o.Call, o.Return = id(), kind, acquire.ID, call, back
			if kind == history.Load || kind == history.Store {
				o.Value = value
			}
			if kind == history.End {
				o.Hold, o.Value, o.Call, o.Until = 0, 0, idle[w], idle[w]
			}
			batch = append(batch, o)
		}
		add(history.Load, grant+1, grant+hold/10)
		add(history.Store, end-hold/5, end-hold/10)
		add(history.Release, end, end+30*time.Microsecond)
		add(history.End, 0, end+31*time.Microsecond)
		idle[w] = end + 32*time.Microsecond
		return idle[w]
	}
	for n := 1; n <= c.visits; n++ {
		w := random.IntN(c.workers)
		if random.IntN(3) > 0 {
			w = (w/8*8 + n) % c.workers // workers differ
		}
		at = max(at, idle[w]) + 20*time.Microsecond + time.Duration(random.IntN(60_000))
		hold := 200*time.Microsecond + time.Duration(random.ExpFloat64()*150_000)
		end := visit(w, at, hold)
		if c.intrude > 0 && n%c.intrude == 0 {
			if other := (w + 1) % c.workers; idle[other] < at {
				end = max(end, visit(other, at+hold/3, hold))
			}
		}
		at = end
		slices.SortStableFunc(batch, func(a, b history.Op) int { return int(a.Return - b.Return) })
		for i := range batch {
			each(&batch[i])
		}
		batch = batch[:0]
	}
	return nil
}

// verdicts returns the verdicts on the crowd.
func (c crowd) verdicts(evidence []history.Op) []checker.Verdict {
	if c.intrude == 0 {
		return []checker.Verdict{{Checker: "exclusion", Status: checker.Pass, Summary: "0 violations", Exposed: 1000}}
	}
	return []checker.Verdict{
		{Checker: "exclusion", Status: checker.Fail, Cause: "service-loss", Summary: "exclusion was violated",
			Story: []string{"w00 was granted the page", "and so was w01"}, Evidence: evidence,
			Exposed: 1000, Violations: 3},
		{Checker: "liveness", Status: checker.Pass, Summary: "no dead time"},
	}
}

// record returns the record of the run, before it is measured.
func (c crowd) record() *results.Run {
	return &results.Run{
		Name: "sim", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Command:  "verify --topology sentinel --lock lease --seed 7",
		Topology: "sentinel", Lock: "lease", Counter: "redis", Faults: []string{"kill-primary@300ms,heal@600ms"},
		Config: results.Config{Workers: c.workers, Processes: 1, Keys: 1, Seed: 7, TTL: int64(time.Second),
			Hold: int64(time.Millisecond)},
		Settings: map[string]string{"server": "Redis 7.0.15"}, Client: map[string]string{"MaxRetries": "-1"},
	}
}

// save writes the crowd's run into a directory, with everything that a report shows.
func (c crowd) save(t *testing.T, out string, change func(*results.Run)) string {
	t.Helper()
	run := c.record()
	change(run)
	f, err := results.OpenFolder(out, run.Name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(f.Path(results.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	w, err := history.Create(file, history.Header{
		Name: run.Name, Workers: c.workers, Keys: 1, Claims: history.Claims{Excludes: true, Expires: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := measure.NewMeter(measure.Options{Workers: c.workers, Keys: 1, To: time.Hour, Excludes: true, Log: f.Log(),
		Started: run.Started})
	suite := uint64(c.workers+1) << 40
	var evidence []history.Op
	last := time.Duration(0)
	each := func(op *history.Op) {
		m.Observe(op)
		err = errors.Join(err, w.Add(op))
		if op.Kind == history.Acquire && len(evidence) < 2 {
			evidence = append(evidence, *op)
		}
		last = max(last, op.Return)
	}
	broken := false
	err = errors.Join(c.play(func(op *history.Op) {
		if !broken && op.Return > 300*time.Millisecond {
			broken = true
			fault := history.Op{ID: history.ID(suite | 1), Kind: history.Fault, Worker: -1, Key: -1,
				Outcome: history.OK, Call: last, Return: last}
			heal := history.Op{ID: history.ID(suite | 2), Kind: history.Heal, Worker: -1, Key: -1, Outcome: history.OK,
				Call: last + 200*time.Millisecond, Return: last + 300*time.Millisecond}
			m.Observe(&fault)
			m.Observe(&heal)
			err = errors.Join(err, w.Add(&fault), w.Note(fault.ID, "n1 was killed <b>and</b> replaced"))
		}
		each(op)
	}), err)
	m.Cut(last)
	m.Finish()
	m.Summarize(run, results.Usage{MachineCPU: 0.4})
	trips := 4.2
	run.Cost.RoundTrips = &trips
	run.Verdicts = c.verdicts(evidence)
	if err = errors.Join(err, w.Close(""), file.Close()); err != nil {
		t.Fatal(err)
	}
	dir, err := f.Commit(run)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Clean(dir)
}
