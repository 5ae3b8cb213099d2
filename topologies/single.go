package topologies

import (
	"context"
	"fmt"
	"time"
)

var single = Spec{
	Name:       "single",
	Doc:        "one server, no replica: no failover, and no lock outlives a restart",
	Sites:      1,
	Nodes:      1,
	Recovery:   500 * time.Millisecond,
	embeddable: true,
	shape: func(t *Topology) {
		t.site("main", t.add("n1", Primary, dataNode))
	},
	healthy: serving,
}

// site adds a site that clients find through the given nodes.
func (t *Topology) site(name string, seeds ...*Node) *Site {
	s := &Site{Name: name, Nodes: seeds, seeds: seeds,
		access: Access{Password: t.password, Engine: t.Spec.Can().Engine}}
	if t.network != nil {
		s.access.Sources = t.block.prefix
	}
	t.Sites = append(t.Sites, s)
	return s
}

// serving tells whether every node accepts writes.
func serving(ctx context.Context, t *Topology) error {
	return t.each(func(n *Node) error {
		if n.State() != Up {
			return fmt.Errorf("is %s", n.State())
		}
		return t.engine.Ready(ctx, n)
	})
}
