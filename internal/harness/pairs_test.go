package harness

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/results"
	"hammerlock/results/compare"
)

// aa is how many real comparisons of a thing with itself are made: make aa makes 20.
var aa = flag.Int("aa", 1, "how many real comparisons of a thing with itself to make")

const (
	realPairs       = 12
	manyComparisons = 20 // enough to judge by
)

// realPlan is a load that supports a p99 within a moment.
func realPlan(p *Plan) {
	p.Counter = counterNamed("memory")
	p.Workload.Workers, p.Workload.Keys, p.Workload.Hold = 4, 1000, 0
	p.Warmup, p.Duration = 50*time.Millisecond, 250*time.Millisecond
	if testing.Short() {
		p.Workload.Think = 3 * time.Millisecond // leaves the cores to other tests; what a visit costs is seen all the same
	}
}

// realTrial runs pairs on warm deployments, B with a change.
func realTrial(t *testing.T, seed uint64, common, planted func(*Plan)) []compare.Pair {
	t.Helper()
	var warm Warm
	defer func() {
		if err := warm.Close(); err != nil {
			t.Error(err)
		}
	}()
	pairs := make([]compare.Pair, realPairs)
	for i, arm := range compare.Schedule(realPairs, seed) {
		n := i / len(pairs[0])
		j := job(t, func(p *Plan) {
			common(p)
			p.Workload.Seed = seed*1000 + uint64(n)
			if arm == compare.ArmB {
				planted(p)
			}
		})
		j.Warm = &warm
		runs, err := j.Run(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pairs[n][arm] = runs[0]
	}
	return pairs
}

func metricsOf(t *testing.T, names ...string) (all []results.Metric) {
	t.Helper()
	for _, name := range names {
		m, err := results.FindMetric(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// differences are the metrics in which a trial, and a comparison of the same runs, see one.
func differences(pairs []compare.Pair, metrics []results.Metric) (trial, table []string) {
	sides := []compare.Side{{Name: "A"}, {Name: "B"}}
	for _, p := range pairs {
		sides[0].Runs, sides[1].Runs = append(sides[0].Runs, p[compare.ArmA]), append(sides[1].Runs, p[compare.ArmB])
	}
	for _, c := range compare.NewTrial("A", "B", pairs, metrics).Effects {
		if c.Effect == compare.Better || c.Effect == compare.Worse {
			trial = append(trial, c.Metric)
		}
	}
	for _, r := range compare.New(sides, nil, metrics).Groups[0].Rows {
		if e := r.Cells[1].Effect; e == compare.Better || e == compare.Worse {
			table = append(table, r.Metric)
		}
	}
	return trial, table
}

// TestRealPairsRaiseNoAlarm compares a real deployment with itself. One comparison is not enough to judge by, and
// would fail once in a while; 20 are.
func TestRealPairsRaiseNoAlarm(t *testing.T) {
	t.Parallel()
	metrics := metricsOf(t, results.Headline...)
	trials, tables := 0, 0
	for seed := range uint64(*aa) {
		var pairs []compare.Pair
		live.Again(t, func(int) string {
			pairs = realTrial(t, seed+1, realPlan, func(*Plan) {})
			for _, c := range compare.NewTrial("A", "A", pairs, metrics).Effects {
				if c.Metric == "cost.round_trips" && (c.Pairs < realPairs/2 || c.Floor == nil) {
					return fmt.Sprintf("%s: %d pairs: nothing could be seen", c.Metric, c.Pairs)
				}
			}
			return ""
		})
		trial, table := differences(pairs, metrics)
		if len(trial) > 0 {
			trials++
		}
		if len(table) > 0 {
			tables++
		}
		t.Logf("comparison %d: ab %v, compare %v", seed+1, trial, table)
	}
	t.Logf("%d comparisons of a thing with itself: false alarms: ab %d, compare %d", *aa, trials, tables)
	if most := *aa / 20; *aa >= manyComparisons && (trials > most || tables > most) {
		t.Errorf("%d and %d false alarms in %d comparisons, at most %d", trials, tables, *aa, most)
	}
}

// TestARealDifferenceIsFound plants one more round trip and, with make aa, visits that take a quarter longer.
func TestARealDifferenceIsFound(t *testing.T) {
	t.Parallel()
	holding := func(d time.Duration) func(*Plan) {
		return func(p *Plan) {
			realPlan(p)
			p.Workload.Workers, p.Workload.Hold, p.Duration = 128, d, 1500*time.Millisecond // long visits: others on the machine matter less
		}
	}
	for name, c := range map[string]struct {
		common, planted func(*Plan)
		metric          string
		visible         float64 // a noise floor above that hides it
		long            bool
	}{
		"one more round trip": {realPlan, func(p *Plan) { p.Locks = lockNamed("get-del") }, "cost.round_trips", 0.25, false},
		"p99 +25 %":           {holding(160 * time.Millisecond), func(p *Plan) { p.Workload.Hold = 200 * time.Millisecond }, "response.p99", 0.1, true},
	} {
		if c.long && *aa < manyComparisons {
			continue
		}
		live.Again(t, func(n int) string {
			pairs := realTrial(t, uint64(n)+1, c.common, c.planted)
			trial, table := differences(pairs, metricsOf(t, c.metric))
			effect := compare.NewTrial("A", "B", pairs, metricsOf(t, c.metric)).Effects[0]
			if effect.Change == nil || effect.Floor == nil {
				return fmt.Sprintf("%s: %+v", name, effect)
			}
			said := fmt.Sprintf("%s: %s changed by %+.1f %%, noise floor %.1f %%; found by ab %v, compare %v", name, c.metric,
				100**effect.Change, 100**effect.Floor, trial, table)
			t.Log(said)
			if slices.Contains(trial, c.metric) && slices.Contains(table, c.metric) {
				return ""
			}
			if *effect.Floor < c.visible {
				t.Errorf("%s: was not found", name)
			}
			return said
		})
	}
}
