package faults

import (
	"context"
	"errors"

	"hammerlock/history"
	"hammerlock/topologies"
)

// moreReplicas is a number of replicas that no primary has. As min-replicas-to-write it makes a server refuse writes.
const moreReplicas = 1000

var noWrites = Fault{
	Name:                "no-writes",
	Redis:               true,
	Doc:                 "the primary of a page's lock takes no writes: it answers each with an error",
	UnavailableAttached: ownServers,
	Effect:              hang,
	breaks:              func(Scene) string { return "" }, // no key is lost, so no assumption is violated
	Inject: ofPrimary(func(ctx context.Context, t *Target, primary *topologies.Node) (string, Heal, error) {
		writes := func(ctx context.Context, replicas int) error {
			return primary.Do(ctx, "CONFIG", "SET", "min-replicas-to-write", replicas).Err()
		}
		return primary.Name + " answered each write with an error", func(ctx context.Context) error {
			return writes(ctx, t.Topology.Options.MinReplicas)
		}, writes(ctx, moreReplicas)
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
