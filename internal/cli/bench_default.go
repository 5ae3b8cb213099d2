package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hammerlock/internal/harness"
	"hammerlock/internal/human"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// firstLoads are the loads of bench if no flag sets one. Under the first load a machine with two cores is not busy, so
// latencies are those of the locks. It has 700 +- 26 visits; a p99 needs 500. The second load shows locks under
// contention, where latencies depend on the machine.
var firstLoads = []func(*harness.Plan){
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 8, 100, time.Second, 7*time.Second
	},
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 32, 0, time.Second, 4*time.Second
	},
}

// loads returns the loads to run, one after the other. If a flag or a file sets the load, this load is the only one.
func (o *options) loads() []func(*harness.Plan) {
	p := &o.plan
	own := p.Verify || p.Service != nil || len(p.Services) > 0 || p.Fleet.Agents != "" || o.File != "" || o.count > 1 ||
		len(o.gates) > 0
	o.Flags.VisitAll(func(f *pflag.Flag) {
		v := settings.ValueOf(f)
		own = own || v != nil && f.Changed && v.Part == load
	})
	if own {
		return []func(*harness.Plan){func(*harness.Plan) {}}
	}
	return firstLoads
}

// The load of the single failover that bench shows. The primary is killed soon after the start, and restarted when a
// replica had time to replace it.
const (
	firstKill     = 700 * time.Millisecond
	firstHeal     = 3800 * time.Millisecond
	firstFailover = 4 * time.Second
	firstLease    = time.Second
)

// failOver kills the primary once for each lock whose topology has a failover.
func (e Env) failOver(ctx context.Context, s signals, c *cobra.Command, o *options) []results.Failover {
	f := &failovers{series: newSeries(e, c, o)}
	f.root, f.tolerant = e.verifyCommand(), true
	p := o.plan
	p.Verify, p.Scenarios, p.Attempts = true, nil, 1
	p.Warmup, p.Duration = firstKill-200*time.Millisecond, firstFailover
	w := &p.Workload
	w.Workers, w.Keys, w.Rate, w.TTL = 16, 64, 200, firstLease
	job, err := p.Check(s.stop, nil)
	if err != nil {
		return nil // this load cannot show it
	}
	p.Faults = []string{fmt.Sprintf("kill-primary@%s", firstKill), fmt.Sprintf("heal@%s", firstHeal)}
	for _, x := range job.Combinations {
		cell := failoverCell{fault: "kill-primary", plan: p, kills: 1}
		cell.plan.Topologies, cell.plan.Locks = []topologies.Spec{x.Topology}, []locks.Spec{x.Lock}
		if !x.Topology.FailsOver() || !x.Lock.Claims.Excludes {
			continue
		}
		if _, err := cell.plan.Check(s.stop, nil); err == nil {
			f.cells = append(f.cells, cell)
		}
	}
	e.complain(f.carryOut(ctx, s, func(context.Context) error { return nil }, f.steps))
	return f.all
}

// firstOfEach returns the first open-loop run of each topology and lock.
func firstOfEach(runs []results.Run) (first []*results.Run) {
	for i := range runs {
		r := &runs[i]
		known := func(k *results.Run) bool { return k.Combination() == r.Combination() }
		if r.Rate > 0 && !slices.ContainsFunc(first, known) {
			first = append(first, r)
		}
	}
	return first
}

// answers returns the rows of the first table.
func answers(runs []results.Run, gone []results.Failover) (all []results.Answer) {
	for _, r := range firstOfEach(runs) {
		a := results.Answer{Run: r, Safe: "-", Gone: "-"}
		if t, known := topologies.Find(r.Topology); known && t.Can().Own {
			a.Safe, a.Gone = t.WhenAServerDies()
		}
		for i := range runs {
			if k := &runs[i]; k.Rate == 0 && k.Combination() == r.Combination() {
				a.Crowd = k
			}
		}
		for i := range gone {
			if f := &gone[i]; f.Topology == r.Topology && f.Lock == r.Lock {
				a.Gone = f.Back50()
			}
		}
		all = append(all, a)
	}
	return all
}

// writeFirst writes the table for choosing a topology, then the tables of the first loads, then hints for further
// reading.
func writeFirst(w io.Writer, runs []results.Run, gone []results.Failover, report string) error {
	crowd := slices.IndexFunc(runs, func(r results.Run) bool { return r.Rate == 0 })
	if crowd < 0 {
		crowd = len(runs)
	}
	p := &human.Printer{W: w}
	p.Err = results.WriteAnswers(w, answers(runs, gone))
	p.Line("")
	if p.Err == nil {
		p.Err = results.WriteText(w, runs[:crowd])
	}
	if p.Err != nil || crowd == len(runs) {
		return p.Err
	}
	p.Line("")
	p.Wrapped("", 0, "THE CROWD: as fast as they can. Latencies would be those of this machine.")
	if p.Err == nil {
		p.Err = results.WriteCrowd(w, runs[crowd:])
	}
	p.Line("")
	p.Fact("your own server", fmt.Sprintf("bench --addr redis://HOST:PORT --lock %s", runs[0].Lock))
	p.Fact("words", "bench explain WORD, as in SATURATED, Jain, hand-off; how locks fail: verify tour")
	p.Fact("failovers", "bench failover: twenty of each, and what becomes of grants")
	p.Fact("choosing", "docs/WHICH.md")
	return errors.Join(p.Err, writeReport(w, report))
}

// writeReport writes the address of the report, if there is one.
func writeReport(w io.Writer, report string) error {
	p := &human.Printer{W: w}
	if page, err := filepath.Abs(report); err == nil && report != "" {
		p.Fact("report", (&url.URL{Scheme: "file", Path: page}).String())
	}
	return p.Err
}
