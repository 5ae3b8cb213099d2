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

// firstLoads are the two loads that bench runs, in turn, if no flag sets a load. The first keeps a machine with two
// cores mostly idle, so it measures the locks and not the machine. It has about 700 visits; a p99 needs 500. The
// second has as many visits as possible, to show locks under contention. Its latencies depend on the machine.
var firstLoads = []func(*harness.Plan){
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 8, 100, time.Second, 7*time.Second
	},
	func(p *harness.Plan) {
		p.Workload.Workers, p.Workload.Rate, p.Warmup, p.Duration = 32, 0, time.Second, 4*time.Second
	},
}

// The method loads returns the loads to run in turn: firstLoads, or a single one if a flag or a file sets the load.
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

// Load and times of the failover that bench shows once. The primary is killed at firstKill, and restarted at
// firstHeal, when a replica has had time to replace it.
const (
	firstKill     = 700 * time.Millisecond
	firstHeal     = 3800 * time.Millisecond
	firstFailover = 4 * time.Second
	firstLease    = time.Second
)

// failOver kills the primary once for each lock whose topology has a failover. It measures for how long the lock was
// unavailable.
func (e Env) failOver(ctx context.Context, s signals, c *cobra.Command, o *options) []results.Failover {
	f := &failovers{series: newSeries(e, c, o)}
	f.root, f.tolerant = e.verifyFlags(), true
	p := o.plan
	p.Verify, p.Scenarios, p.Attempts = true, nil, 1
	p.Warmup, p.Duration = firstKill-200*time.Millisecond, firstFailover
	w := &p.Workload
	w.Workers, w.Keys, w.Rate, w.TTL = 16, 64, 200, firstLease
	job, err := p.Check(s.stop, nil)
	if err != nil {
		return nil // this plan cannot be run with a failover, so the column stays empty
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

// firstOfEach returns, for each topology and lock, the first run with an open loop (a fixed rate of visits).
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

// The function answers returns the rows of the table for choosing a topology.
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

// writeFirst writes three parts: the table for choosing a topology, the tables of the first loads, and hints on other
// commands.
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

// writeReport writes the file:// address of the report; nothing if the argument report is empty.
func writeReport(w io.Writer, report string) error {
	p := &human.Printer{W: w}
	if page, err := filepath.Abs(report); err == nil && report != "" {
		p.Fact("report", (&url.URL{Scheme: "file", Path: page}).String())
	}
	return p.Err
}
