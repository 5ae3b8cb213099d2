package faults

import (
	"context"
	"errors"
	"strings"

	"hammerlock/history"
	"hammerlock/topologies"
)

var refuseWrites = Fault{
	Name:  "refuse-writes",
	Redis: true,
	Doc: "as many sites as a quorum can spare are out of memory: they answer every command that " +
		"needs some with an error",
	Unavailable:         needsQuorum,
	UnavailableAttached: ownMemory,
	Effect:              always(history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: true}),
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		var names []string
		var full []*topologies.Node
		for _, i := range t.Rand.Perm(len(t.Topology.Nodes))[:t.Scene.Sites-t.Scene.quorum()] {
			full = append(full, t.Topology.Nodes[i])
			names = append(names, t.Topology.Nodes[i].Name)
		}
		limit := func(ctx context.Context, bytes string) error {
			var errs []error
			for _, n := range full {
				errs = append(errs, n.Do(ctx, "CONFIG", "SET", "maxmemory", bytes).Err())
			}
			return errors.Join(errs...)
		}
		return strings.Join(names, " and ") + " have no memory left",
			func(ctx context.Context) error { return limit(ctx, "0") }, limit(ctx, "1")
	},
}
