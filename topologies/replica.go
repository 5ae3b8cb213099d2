package topologies

import (
	"context"
	"errors"
	"path/filepath"
	"time"
)

var replica = Spec{
	Name:     "replica",
	Doc:      "a primary and three asynchronous replicas; only an operator promotes one",
	Sites:    1,
	Nodes:    4,
	Copies:   3,
	Recovery: 500 * time.Millisecond,
	byHand:   true,
	shape: func(t *Topology) {
		primary := t.add("n1", Primary, dataNode)
		for i := range 3 {
			t.add(nodeName("n", i+1), Replica, dataNode)
		}
		t.site("main", primary)
		t.Sites[0].Nodes = t.Nodes
		t.Sites[0].byHand.Store(primary)
		t.Sites[0].access.Moved = filepath.Join(t.dir, "primary")
	},
	join: func(ctx context.Context, t *Topology) error { return followFirst(ctx, t.Nodes) },
	healthy: func(ctx context.Context, t *Topology) error {
		primary, replicas, err := roles(ctx, t.Nodes)
		if err != nil {
			return err
		}
		if current := t.Sites[0].current(); primary != current {
			return errors.New("node " + primary.Name + " is primary, clients are sent to " + current.Name)
		}
		return followed(ctx, primary, replicas)
	},
}

func followFirst(ctx context.Context, nodes []*Node) error {
	return each(nodes[1:], func(n *Node) error { return follow(ctx, n, nodes[0]) })
}

// roles asks the data nodes for their roles. It returns an error unless exactly one is a primary.
func roles(ctx context.Context, nodes []*Node) (primary *Node, replicas []*Node, err error) {
	for _, n := range nodes {
		if n.State() != Up {
			return nil, nil, errors.New("node " + n.Name + " is " + n.State().String())
		}
		info, err := n.replication(ctx)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case info["role"] != "master":
			replicas = append(replicas, n)
		case primary != nil:
			return nil, nil, errors.New("nodes " + primary.Name + " and " + n.Name + " are both primaries")
		default:
			primary = n
		}
	}
	if primary == nil {
		return nil, nil, errors.New("no node is a primary")
	}
	return primary, replicas, nil
}
