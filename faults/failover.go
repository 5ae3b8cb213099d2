package faults

import (
	"context"
	"fmt"
)

var failover = Fault{
	Name:  "failover",
	Redis: true,
	Doc: "an operator lets a replica take the primary's place: SENTINEL FAILOVER, " +
		"CLUSTER FAILOVER TAKEOVER, REPLICAOF NO ONE",
	Unavailable: func(s Scene) string {
		if !s.Can.Own && s.Topology == "replica" {
			return "there is no sentinel to ask for it: the operator promotes a replica by hand"
		}
		return needsHeirs(s)
	},
	Sends:  []string{"failover"},
	Effect: outage,
	Inject: func(ctx context.Context, t *Target) (what string, _ Heal, _ error) {
		site, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		err = act(ctx, func(ctx context.Context) error {
			next, err := site.Failover(ctx, primary)
			if err == nil {
				what = fmt.Sprintf("%s took the place of %s", next.Name, primary.Name)
			}
			return err
		})
		return what, nil, err
	},
}
