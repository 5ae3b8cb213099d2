package faults

import (
	"context"

	"hammerlock/history"
	"hammerlock/topologies"
)

var powerLoss = Fault{
	Name:  "power-loss",
	Redis: true,
	Doc: "the server of a held lock dies and comes back with no more of its log than was fsynced " +
		"(appendfsync everysec): " +
		"what kill -9 never loses",
	Needs:               Needs{Power: true},
	UnavailableAttached: ownServers,
	Effect: func(s Scene) history.Effect {
		e := keysLost(true)(s)
		if s.Keeps { // each write is synced to the disk before its reply
			e.Loses = history.NoLoss
		}
		return e
	},
	lasts: untilTakenLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		return t.forget(ctx, "%s lost its power while w%02d held a lock",
			func(ctx context.Context, n *topologies.Node, _ string) (Heal, error) {
				if err := n.PowerLoss(); err != nil {
					return nil, err
				}
				return nil, n.Start(ctx)
			})
	},
}
