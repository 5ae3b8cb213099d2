package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/results/compare"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// comparisons is the number of times that a deployment is compared with itself. A single comparison only shows that
// comparing works.
var comparisons = flag.Uint64("comparisons", 1, "how many comparisons of a deployment with itself (make aa: 20)")

// TestAloneAThingIsComparedWithItself counts how often "bench ab" and "bench compare" report a difference between two
// equal sides. About one comparison in twenty should.
func TestAloneAThingIsComparedWithItself(t *testing.T) {
	trials, tables := uint64(0), uint64(0)
	for seed := range *comparisons {
		trial, table, err := itself(t.Context(), seed+1, comparedLoad)
		if err != nil {
			t.Error(err)
		}
		if len(trial) > 0 {
			trials++
		}
		if len(table) > 0 {
			tables++
		}
		t.Logf("comparison %d: ab %v, compare %v", seed+1, trial, table)
	}
	if most := max(*comparisons/20, 1); trials > most || tables > most {
		t.Errorf("%d comparisons of a thing with itself: false alarms: ab %d, compare %d; expected at most %d of each",
			*comparisons, trials, tables, most)
	}
}

// TestAlonePlantedDifferencesAreFound makes one side slower, and expects the difference to be reported. Longer visits
// take a minute to detect, so they are tried only if comparisons is greater than one.
func TestAlonePlantedDifferencesAreFound(t *testing.T) {
	for _, p := range []planted{oneMoreTrip(comparedLoad), longerVisits}[:min(*comparisons, 2)] {
		if err := p.find(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// pairs is the number of runs of each side of a comparison.
const pairs = 12

// comparedLoad sets a load with enough visits for a p99 in a short run.
func comparedLoad(p *Plan) {
	p.Counter, _ = workload.FindCounter("memory")
	p.Workload.Workers, p.Workload.Keys, p.Workload.Hold = 4, 1000, 0
	p.Warmup, p.Duration = 50*time.Millisecond, 250*time.Millisecond
	if *comparisons == 1 {
		// leave the cores to other tests: the cost of a visit is visible all the same
		p.Workload.Think = 3 * time.Millisecond
	}
}

// compared runs pairs on warm deployments. Side B has a change.
func compared(ctx context.Context, seed uint64, common, change func(*Plan)) (_ []compare.Pair, err error) {
	dir, err := os.MkdirTemp("", "aa-")
	if err != nil {
		return nil, err
	}
	var warm Warm
	defer func() { err = errors.Join(err, warm.Close(), os.RemoveAll(dir)) }()
	single, _ := topologies.Find("single")
	all := make([]compare.Pair, pairs)
	for i, arm := range compare.Schedule(pairs, seed) {
		n := i / len(all[0])
		p := Default()
		p.Topologies, p.Out = []topologies.Spec{single}, dir
		common(&p)
		p.Workload.Seed = seed*1000 + uint64(n)
		if arm == compare.ArmB {
			change(&p)
		}
		j, err := p.Check(ctx, nil)
		if err != nil {
			return nil, err
		}
		j.Warm = &warm
		runs, err := j.Run(ctx, ctx)
		if err != nil {
			return nil, err
		}
		all[n][arm] = runs[0]
	}
	return all, nil
}

// metrics returns the existing metrics with the given names.
func metrics(names ...string) (all []results.Metric, err error) {
	for _, name := range names {
		m, errName := results.FindMetric(name)
		all, err = append(all, m), errors.Join(err, errName)
	}
	return all, err
}

// itself compares a deployment with itself. It is an error if no difference in round trips could have been seen.
func itself(ctx context.Context, seed uint64, common func(*Plan)) (trial, table []string, err error) {
	headline, err := metrics(results.Headline...)
	if err != nil {
		return nil, nil, err
	}
	all, err := compared(ctx, seed, common, func(*Plan) {})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range compare.NewTrial("A", "A", all, headline).Effects {
		if c.Metric == "cost.round_trips" && (c.Pairs < pairs/2 || c.Floor == nil) {
			err = fmt.Errorf("%s: %d pairs: nothing could be seen", c.Metric, c.Pairs)
		}
	}
	trial, table = differences(all, headline)
	return trial, table, err
}

// differences returns the metrics in which a trial, and a comparison of the same runs, find a difference.
func differences(all []compare.Pair, metrics []results.Metric) (trial, table []string) {
	sides := []compare.Side{{Name: "A"}, {Name: "B"}}
	for _, p := range all {
		sides[0].Runs, sides[1].Runs = append(sides[0].Runs, p[compare.ArmA]), append(sides[1].Runs, p[compare.ArmB])
	}
	for _, c := range compare.NewTrial("A", "B", all, metrics).Effects {
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

// planted is a difference that must be found.
type planted struct {
	name, metric   string
	common, change func(*Plan)
}

// oneMoreTrip plants a lock that needs one more round trip.
func oneMoreTrip(common func(*Plan)) planted {
	return planted{"one more round trip", "cost.round_trips", common, func(p *Plan) {
		lock, _ := known.Find("get-del")
		p.Locks = []locks.Spec{lock}
	}}
}

// longerVisits makes visits a quarter longer. Visits are long, so that other programs on the machine matter less.
var longerVisits = planted{"p99 +25 %", "response.p99", func(p *Plan) {
	comparedLoad(p)
	p.Workload.Workers, p.Workload.Hold, p.Duration = 128, 160*time.Millisecond, 1500*time.Millisecond
}, func(p *Plan) { p.Workload.Hold = 200 * time.Millisecond }}

// find tries three times, because a busy machine has a high noise floor.
func (d planted) find(ctx context.Context) error {
	list, err := metrics(d.metric)
	if err != nil {
		return err
	}
	for seed := uint64(1); seed <= 3; seed++ {
		all, err := compared(ctx, seed, d.common, d.change)
		if err != nil {
			return err
		}
		trial, table := differences(all, list)
		if effect := compare.NewTrial("A", "B", all, list).Effects[0]; effect.Change != nil && effect.Floor != nil {
			fmt.Printf("%s: %s changed by %+.1f %%, noise floor %.1f %%; found by ab %v, compare %v\n", d.name,
				d.metric, 100**effect.Change,
				100**effect.Floor, trial, table)
		}
		if slices.Contains(trial, d.metric) && slices.Contains(table, d.metric) {
			return nil
		}
	}
	return fmt.Errorf("%s: was not found", d.name)
}
