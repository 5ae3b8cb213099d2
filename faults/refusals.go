package faults

import (
	"context"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/topologies"
)

// outOfMemory begins the error reply of a server that has reached its maxmemory.
const outOfMemory = "OOM"

// moreReplicas is a value of min-replicas-to-write. It is larger than any primary's number of replicas, so with it
// a server refuses all writes.
const moreReplicas = 1000

var noWrites = Fault{
	Name:  "no-writes",
	Arg:   oneOf(outOfMemory),
	Redis: true,
	Doc: "the primary of a page's lock takes no writes: it answers each with an error (no-writes:OOM: it has reached " +
		"maxmemory and evicts nothing, so that it takes those that free memory or need none)",
	UnavailableAttached: ownServers,
	Effect:              hang,
	breaks:              func(Scene) string { return "" }, // no key is lost, so no assumption is violated
	Inject: ofPrimary(func(ctx context.Context, t *Target, primary *topologies.Node) (string, Heal, error) {
		text, limit, some, none := " answered each write with an error", "min-replicas-to-write", moreReplicas,
			t.Topology.Options.MinReplicas
		if t.Arg == outOfMemory {
			text, limit, some, none = " had no memory left", "maxmemory", 1, 0
		}
		set := func(ctx context.Context, value int) error {
			return primary.Do(ctx, "CONFIG", "SET", limit, value).Err()
		}
		return primary.Name + text, func(ctx context.Context) error { return set(ctx, none) }, set(ctx, some)
	}),
}

// pausedAtMost limits the pause of a server, in case the suite ends before it heals the fault.
const pausedAtMost = 20 * time.Second

var pauseWrites = Fault{
	Name:  "pause-writes",
	Redis: true,
	Doc: "the primary of a page's lock holds all writes back and answers reads (CLIENT PAUSE WRITE); it executes " +
		"them when it is healed",
	Sends:  []string{"client-pause"},
	Effect: outage, // a sentinel's messages are writes too, and its pings wait behind them
	Inject: ofPrimary(func(ctx context.Context, _ *Target, primary *topologies.Node) (string, Heal, error) {
		return primary.Name + " held all writes back", func(ctx context.Context) error {
			return primary.Do(ctx, "CLIENT", "UNPAUSE").Err()
		}, primary.Do(ctx, "CLIENT", "PAUSE", pausedAtMost.Milliseconds(), "WRITE").Err()
	}),
}

var scriptFlush = Fault{
	Name:   "script-flush",
	Redis:  true,
	Brief:  true,
	Doc:    "an operator types SCRIPT FLUSH on all servers: keys stay",
	Sends:  []string{"script-flush"},
	Effect: always(hits(history.Servers)),
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		var errs []error
		for _, n := range t.Topology.Nodes {
			if n.State() == topologies.Up && n.Role != topologies.Sentinel {
				errs = append(errs, n.Do(ctx, "SCRIPT", "FLUSH").Err())
			}
		}
		return "all servers forgot their scripts", nil, errors.Join(errs...)
	},
}
