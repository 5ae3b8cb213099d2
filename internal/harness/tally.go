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

// views returns the page views after all workers have ended.
func (x *Run) views(ctx context.Context) (results.Views, error) {
	tally, err := x.tally(ctx)
	v := results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Fenced: x.meter.Stores.Fenced,
		Doubt: tally.Doubt, Excused: tally.Excused, Unread: tally.Unread, Missing: tally.Missing}
	if !tally.Unread {
		v.Final, v.Lost = tally.Final, tally.Lost()
	}
	return v, err
}

// tally reads the counter after all workers have ended. Pauses of holders and failures of servers may excuse missing
// views, but only as many as they can have caused. A counter that cannot be read is an error, unless a server failed
// without a planned fault.
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

// excused returns how many acknowledged views may be missing with a correct lock. It counts the views that late
// holders may have overwritten, and one view for each evicted key. Whenever a server may have forgotten its lock, it
// counts one view for each worker. If the counter's server failed, all views may be missing.
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
