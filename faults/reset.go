package faults

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/topologies/links"
)

// resetFor is the time for which connections are refused.
const resetFor = 50 * time.Millisecond

var reset = Fault{
	Name: "reset",
	Arg:  timeOf("for how long, as in reset:1s"),
	Doc: "all connections of clients break, and none can be made for 50 ms (reset:1s: for 1 s): " +
		"what is called then fails, and most of it " +
		"has not been done",
	Needs: Needs{Links: true},
	Effect: func(s Scene) history.Effect {
		e := history.Effect{Hits: []history.Party{history.Links}, Blocks: true}
		if s.Session {
			e.Loses = history.LosesKeys
		}
		return e
	},
	lasts: length{besides: resetFor},
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		lasting := t.time(resetFor)
		stop, err := t.Topology.Network().Apply(links.Rule{
			From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes}, Effect: links.Reset,
		})
		if err != nil {
			return "", nil, err
		}
		defer stop()
		sleep(ctx, lasting)
		return fmt.Sprintf("clients had no connection for %s", lasting), nil, nil
	},
}
