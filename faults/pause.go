package faults

import (
	"context"
	"errors"
	"strings"

	"hammerlock/history"
	"hammerlock/topologies"
)

var pausePrimary = Fault{
	Name: "pause-primary",
	Doc: "the primary of a page's lock is stopped (SIGSTOP) and goes on when it is healed: " +
		"where it was replaced, as a zombie",
	UnavailableAttached: ownServers,
	Effect:              outage,
	Inject: ofPrimary(func(_ context.Context, _ *Target, primary *topologies.Node) (string, Heal, error) {
		return "paused " + primary.Name, resume(primary), primary.Pause()
	}),
}

var pauseMinority = Fault{
	Name:                "pause-minority",
	Doc:                 "as many sites as a quorum can spare are stopped (SIGSTOP) and go on when they are healed",
	Unavailable:         needsQuorum,
	UnavailableAttached: ownServers,
	Effect:              always(history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: true}),
	Inject: func(_ context.Context, t *Target) (string, Heal, error) {
		nodes := t.Topology.Nodes
		var names []string
		var heals []Heal
		var errs []error
		for _, i := range t.Rand.Perm(len(nodes))[:t.Scene.Sites-t.Scene.quorum()] {
			names = append(names, nodes[i].Name)
			heals = append(heals, resume(nodes[i]))
			errs = append(errs, nodes[i].Pause())
		}
		return "paused " + strings.Join(names, " and "), all(heals), errors.Join(errs...)
	},
}

// all returns a Heal that calls several Heals in order.
func all(heals []Heal) Heal {
	return func(ctx context.Context) error {
		var errs []error
		for _, h := range heals {
			errs = append(errs, h(ctx))
		}
		return errors.Join(errs...)
	}
}
