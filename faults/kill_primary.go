package faults

import (
	"context"

	"hammerlock/history"
	"hammerlock/topologies"
)

var killPrimary = Fault{
	Name: "kill-primary",
	Doc: "the primary of a page's lock is killed; it comes back empty, " +
		"or with its log, when it is healed",
	UnavailableAttached: ownServers,
	Effect:              death,
	Inject: ofPrimary(func(_ context.Context, _ *Target, primary *topologies.Node) (string, Heal, error) {
		return "killed " + primary.Name, restart(primary), primary.Kill()
	}),
}

var killNode = Fault{
	Name: "kill-node",
	Arg:  node,
	Doc: "a node drawn at random, sentinels included, is killed (kill-node:n2: that one); " +
		"it comes back empty, or with its log, when it is healed",
	UnavailableAttached: ownServers,
	Effect:              death,
	targets:             nodeNames,
	Names:               func(arg string, s Scene) (named, known []string) { return []string{arg}, s.Names },
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		var up []*topologies.Node
		for _, n := range t.Topology.Nodes {
			if n.State() == topologies.Up && (t.Arg == "" || t.Arg == n.Name) {
				up = append(up, n)
			}
		}
		if len(up) == 0 {
			return "", nil, errNoNode
		}
		n := up[t.Rand.IntN(len(up))]
		return "killed " + n.Name, restart(n), n.Kill()
	},
}

// StartNode returns a fault that starts a node that is down, at the user's request. It is recorded like a fault,
// because the plan does not have it.
func StartNode(n *topologies.Node) Fault {
	return Fault{Name: "start-node", Effect: always(hits(history.Servers)),
		Inject: func(ctx context.Context, _ *Target) (string, Heal, error) {
			return "started " + n.Name, nil, n.Start(ctx)
		}}
}
