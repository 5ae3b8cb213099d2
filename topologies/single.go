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

// site adds a site. Its clients connect first to the given nodes.
func (t *Topology) site(name string, seeds ...*Node) *Site {
	s := &Site{Name: name, Nodes: seeds, seeds: seeds,
		access: Access{User: t.Options.User, Password: t.clientPassword(), DB: t.Options.Database,
			Sentinel: [2]string{"", t.password}, Engine: t.Spec.Can().Engine}}
	if t.network != nil {
		s.access.Sources = t.block.prefix
	}
	t.Sites = append(t.Sites, s)
	return s
}

// clientPassword returns the password of clients. The suite, sentinels and replicas are the default user, with
// another password. So a client that forgets its user name is refused.
func (t *Topology) clientPassword() string {
	if t.Options.User == "" {
		return t.password
	}
	return t.password + "-" + t.Options.User
}

// Database returns the number of the clients' database; 0 on attached servers.
func (n *Node) Database() int { return n.topology.database() }

func (t *Topology) database() int {
	if t.clustered() {
		return 0
	}
	return t.Options.Database
}

// serving returns nil if every node accepts writes.
func serving(ctx context.Context, t *Topology) error {
	return t.each(func(n *Node) error {
		if n.State() != Up {
			return fmt.Errorf("is %s", n.State())
		}
		return t.engine.Ready(ctx, n)
	})
}
