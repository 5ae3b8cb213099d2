package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/workload"
)

// views returns the numbers of page views, when all workers have ended.
func (x *Run) views(ctx context.Context) (results.Views, error) {
	tally, err := x.tally(ctx)
	v := results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Fenced: x.meter.Stores.Fenced,
		Doubt: tally.Doubt, Excused: tally.Excused, Unread: tally.Unread, Missing: tally.Missing}
	if !tally.Unread {
		v.Final, v.Lost = tally.Final, tally.Lost()
	}
	return v, err
}

// tally compares the counter's page views with those that were acknowledged, when all workers have ended. Missing
// views are excused up to the number that late holders and failed servers can have caused. A counter that cannot be
// read is an error, unless a server failed without a planned fault.
func (x *Run) tally(ctx context.Context) (t checker.Tally, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		cleanTimeout+time.Duration(len(x.deployment.Pages))*cleanPage)
	defer cancel()
	t = checker.Tally{Acknowledged: x.meter.Stores.Acknowledged, Unknown: x.meter.Stores.Unknown,
		Doubt: strings.Join(x.incidents, "; "), Missing: x.missing}
	counts, err := x.deployment.Views(ctx)
	if t.Unread = err != nil; t.Unread && t.Doubt != "" {
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read the counter at the end: %w", err)
	}
	for _, c := range counts {
		t.Final += c.Views
	}
	t.Excused = x.excused(t.Acknowledged)
	if at, stood := x.meter.Stood(); t.Doubt == "" && t.Excused > 0 && t.Lost() > 0 {
		t.Doubt = fmt.Sprintf("the machine paused for %s at %s", human.Duration(stood), human.Duration(at))
	}
	return t, nil
}

// excused returns how many acknowledged views may be missing although the lock is correct. Late holders may have
// overwritten views. A server that failed may have forgotten its lock, which costs up to one view for each worker.
// Each evicted key costs one view. If the server of the counter failed, all views may be missing.
func (x *Run) excused(acknowledged int64) int64 {
	p, failed := &x.combo.Plan, x.meter.Failed()
	if x.combo.Lock.Sites == locks.NoSite || x.combo.Topology.Can().Lock {
		return 0
	}
	if n := len(x.deployment.Topology.Nodes); slices.ContainsFunc(failed, func(node int64) bool {
		return int(node) >= n || p.Counter.Place == workload.OnTopology
	}) {
		return acknowledged
	}
	return x.meter.Overwritten() + int64(len(failed)*p.Workload.Workers) + x.watch.Lost
}
