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

// views are the page views when all workers have ended.
func (x *Run) views(ctx context.Context) (results.Views, error) {
	tally, err := x.tally(ctx)
	v := results.Views{Acknowledged: tally.Acknowledged, Unknown: tally.Unknown, Fenced: x.meter.Stores.Fenced,
		Doubt: tally.Doubt, Excused: tally.Excused, Unread: tally.Unread, Missing: tally.Missing}
	if !tally.Unread {
		v.Final, v.Lost = tally.Final, tally.Lost()
	}
	return v, err
}

// tally reads the counter when all workers have ended. Missing views may be excused by pauses of holders and failures
// of servers, but only as many as these can have caused. It is an error if the counter cannot be read, unless a server
// failed without a planned fault.
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

// excused is how many of the acknowledged views may be missing under a correct lock: those that late holders may have
// overwritten, one for each worker each time that a server may have forgotten its lock, and one for each evicted key.
// If the server of the counter itself failed, all may be missing.
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
