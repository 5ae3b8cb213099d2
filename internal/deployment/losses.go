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

// losses detects that an attached server has lost keys: another client deleted them all, or the server evicted some.
// The suite writes a key without an expiry, the canary. If the canary is missing, the database was emptied. The
// server's counters tell the reason; without a canary, they are the only evidence. An expired key is not a loss.
type losses struct {
	known    map[string]int64 // counters at the last look; nil = there was none
	emptied  int              // number of times that the suite itself emptied the server
	canary   string           // name of the canary; empty = none could be written
	names    int              // number of names that were tried for it: a cluster node refuses keys of other slots
	fresh    bool             // the canary was written after the counters were last read
	evicting bool             // keys had been evicted at the last look
	since    time.Duration    // last time at which no keys were being evicted
}

// Counters in INFO that show losses.
const evictedKeys, swaps = "evicted_keys", "cmdstat_swapdb"

const evicts = "it evicted keys (maxmemory)"

var emptying = []struct{ counter, text string }{
	{"cmdstat_flushall", "FLUSHALL was called"}, {"cmdstat_flushdb", "FLUSHDB was called"},
	{swaps, "SWAPDB was called"},
}

// canaryNames is the number of names for a canary that one look tries; mostCanaryNames is the limit for all looks.
const canaryNames, mostCanaryNames = 16, 256

// counters parses the counters of losses in INFO.
func counters(info map[string]string) map[string]int64 {
	all := map[string]int64{evictedKeys: 0}
	all[evictedKeys], _ = strconv.ParseInt(info[evictedKeys], 10, 64)
	for _, e := range emptying {
		calls := int64(0)
		_, _ = fmt.Sscanf(info[e.counter], "calls=%d", &calls) // INFO lacks the field until the first call
		all[e.counter] = calls
	}
	return all
}

// lost compares the counters with those of the last look, and looks for the canary. It records a loss as an incident
// that began when the server was last known to be well. It skips replicas.
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
	if n.node.Life().Emptied != emptied { // the suite has just emptied the server
		return
	}
	what := ""
	for _, e := range emptying {
		calls := now[e.counter] - before[e.counter]
		unproven := l.canary == "" || l.fresh || e.counter == swaps && calls > 1 // two swaps may cancel each other
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

// evicted merges consecutive evictions into one incident.
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

// setCanary writes a canary. On a cluster node, it searches for a name in one of the node's slots.
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

// loses records an incident: the server has lost keys.
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
