package deployment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/topologies"
)

// losses detects that an attached server has lost keys: another client has deleted them all, or the server has
// evicted some. Keys that expire do not count.
//
// The suite writes a canary, a key without an expiry. If the canary has disappeared, the database was emptied.
// Counters of the server tell how. If no canary could be written, the counters are the only evidence.
type losses struct {
	known    map[string]int64 // counters when they were last read; nil = never
	emptied  int              // how often the suite itself has emptied the server
	canary   string           // name of the canary; empty = no canary could be written
	names    int              // number of names tried for the canary; a cluster node accepts only keys in its own slots
	fresh    bool             // the canary was written after the counters were last read
	evicting bool             // at the last reading, keys were being evicted
	since    time.Duration    // last time at which no keys were being evicted
}

// Fields of the command INFO that show losses.
const evictedKeys, swaps = "evicted_keys", "cmdstat_swapdb"

const evicts = "it evicted keys (maxmemory)"

var emptying = []struct{ counter, text string }{
	{"cmdstat_flushall", "FLUSHALL was called"}, {"cmdstat_flushdb", "FLUSHDB was called"},
	{swaps, "SWAPDB was called"},
}

// canaryNames limits the names for a canary that are tried in one reading. mostCanaryNames limits those in all.
const canaryNames, mostCanaryNames = 16, 256

// counters reads the fields that show losses from the reply to INFO.
func counters(info map[string]string) map[string]int64 {
	all := map[string]int64{evictedKeys: 0}
	all[evictedKeys], _ = strconv.ParseInt(info[evictedKeys], 10, 64)
	for _, e := range emptying {
		calls := int64(0)
		_, _ = fmt.Sscanf(info[e.counter], "calls=%d", &calls) // INFO omits the field before the first call
		all[e.counter] = calls
	}
	return all
}

// The method lost looks for losses since the last reading: it compares counters, and reads the canary. It records a
// loss as an incident. The incident begins at the last time at which the server is known to have had its keys.
// Replicas are skipped.
func (n *watched) lost(ctx context.Context, info map[string]string, emptied int) {
	l := &n.losses
	if n.d.Topology.Spec.Can().Own || n.number >= len(n.d.Topology.Nodes) || n.node.Role == topologies.Sentinel ||
		info["role"] == replicaRole {
		n.evicted(0)
		n.losses = losses{}
		return
	}
	now, before := counters(info), l.known
	if l.known = now; before == nil || l.emptied != emptied {
		l.emptied = emptied
		n.setCanary(ctx)
		return
	}
	missing := l.canary != "" && errors.Is(n.node.Do(ctx, "GET", l.canary).Err(), redis.Nil)
	if n.node.Life().Emptied != emptied { // the suite has emptied the server in the meantime
		return
	}
	what := ""
	for _, e := range emptying {
		calls := now[e.counter] - before[e.counter]
		unproven := l.canary == "" || l.fresh || e.counter == swaps && calls > 1 // two swaps bring the canary back
		if calls > 0 && (missing || unproven) {
			what = e.text
		}
	}
	evicted := now[evictedKeys] - before[evictedKeys]
	if missing && what == "" && evicted == 0 {
		what = "a key of the suite was gone"
	}
	if l.fresh = false; missing || l.canary == "" {
		n.setCanary(ctx)
	}
	if what != "" {
		n.watch.lose(1)
		n.loses(what, n.well)
	}
	n.evicted(evicted)
}

// evicted records evictions. Consecutive readings with evictions make one incident. The argument keys is the number
// of keys evicted since the last reading.
func (n *watched) evicted(keys int64) {
	l := &n.losses
	switch evicting := keys > 0; {
	case evicting && !l.evicting:
		l.since = n.well
	case !evicting && l.evicting:
		n.loses(evicts, l.since)
	}
	l.evicting = keys > 0
	n.watch.lose(keys)
}

// setCanary writes a canary. On a node of a cluster, it tries names until the node accepts one.
func (n *watched) setCanary(ctx context.Context) {
	l := &n.losses
	for range canaryNames {
		name := l.canary
		if name == "" {
			if l.names == mostCanaryNames {
				return
			}
			name = fmt.Sprintf("%scanary:%s:%d", n.d.Topology.Prefix(), n.node.Name, l.names)
		}
		err := n.node.Do(ctx, "SET", name, "1").Err()
		if err == nil {
			l.canary, l.fresh = name, true
			return
		}
		if l.canary = ""; !redis.HasErrorPrefix(err, "MOVED") {
			return
		}
		l.names++
	}
}

// The method loses records an incident of a server that has lost keys.
func (n *watched) loses(what string, since time.Duration) {
	what = n.node.Name + " lost keys: " + what
	n.watch.note(n.lane.Next(), what)
	to := n.lane.Mark(&history.Op{Kind: history.Incident, Key: -1, Worker: -1, Call: since, Value: int64(n.number),
		Outcome: history.OK})
	n.watch.tell(0, "%s from %.3f s to %.3f s", what, since.Seconds(), to.Seconds())
}

func (w *Watch) lose(keys int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Lost += keys
}
