package faults

import (
	"context"
	"errors"
	"fmt"

	"hammerlock/history"
	"hammerlock/topologies"
)

var cutSubscriptions = Fault{
	Name:  "cut-subscriptions",
	Redis: true,
	Doc: "the connections of all who wait for messages are closed (CLIENT KILL TYPE pubsub): " +
		"who subscribes again has missed some",
	Sends:  []string{"client-kill"},
	Effect: always(hits(history.Links)),
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		var errs []error
		cut := int64(0)
		for _, n := range t.Topology.Nodes {
			if n.Role == topologies.Sentinel {
				continue // through these subscriptions clients learn the address of the primary
			}
			killed, err := n.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Int64()
			errs = append(errs, err)
			cut += killed
		}
		return fmt.Sprintf("closed %d connections with subscriptions", cut), nil, errors.Join(errs...)
	},
}
