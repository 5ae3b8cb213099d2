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

// losses finds out whether an attached server has lost keys although it works: another client has deleted all, or it
// has evicted keys to make room. The canary is a key of the suite without an expiry: if it is missing, the database was
// emptied. The server's counters show the reason, and alone must do if there is no canary. Keys that expired are no
// loss.
type losses struct {
	known    map[string]int64 // counters at the last look; nil = there was none
	emptied  int              // how often the suite itself has emptied the server
	canary   string           // name of the canary; empty = none could be written
	names    int              // number of names that were tried for it: a cluster node refuses keys of other slots
	fresh    bool             // the canary was written after the counters were last read
	evicting bool             // keys had been evicted at the last look
	since    time.Duration    // when it was last known that no keys were being evicted
}

// Counters in INFO that show losses, in the order in which they are named as the cause.
const evictedKeys, swaps = "evicted_keys", "cmdstat_swapdb"

const evicts = "it evicted keys (maxmemory)"

var emptying = []struct{ counter, text string }{
	{"cmdstat_flushall", "FLUSHALL was called"}, {"cmdstat_flushdb", "FLUSHDB was called"},
	{swaps, "SWAPDB was called"},
}

// canaryNames is how many names for a canary are tried in one look, and mostCanaryNames in all.
const canaryNames, mostCanaryNames = 16, 256

// counters reads the counters of losses in INFO.
func counters(info map[string]string) map[string]int64 {
	all := map[string]int64{evictedKeys: 0}
	all[evictedKeys], _ = strconv.ParseInt(info[evictedKeys], 10, 64)
	for _, e := range emptying {
		calls := int64(0)
		_, _ = fmt.Sscanf(info[e.counter], "calls=%d", &calls) // the field does not exist before the first call
		all[e.counter] = calls
	}
	return all
}

// lost compares the counters with those at the last look, and looks for the canary. It records a loss as an incident
// since the last time at which the server was known to be well. Replicas are skipped.
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
	if n.node.Life().Emptied != emptied { // the suite has just done it
		return
	}
	what := ""
	for _, e := range emptying {
		calls := now[e.counter] - before[e.counter]
		unproven := l.canary == "" || l.fresh || e.counter == swaps && calls > 1 // there and back
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

// evicted combines evictions that follow each other into one incident.
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

// setCanary writes a canary, on a cluster node under a name whose slot it owns.
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

// loses records that the server has lost keys.
func (n *watched) loses(what string, since time.Duration) {
	what = n.node.Name + " lost keys: " + what
	n.watch.note(n.lane.Next(), what)
	to := n.lane.Mark(&history.Op{Kind: history.Incident, Key: -1, Worker: -1, Call: since, Value: int64(n.number),
		Outcome: history.OK})
	n.watch.tell(0, "%s from %.3f s to %.3f s", what, since.Seconds(), to.Seconds())
}

// lose counts lost keys.
func (w *Watch) lose(keys int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Lost += keys
}
