package topologies

import "testing"

// TestAccessTellsTheReplicas asks a site, and what a worker process makes of its access, how many replicas there are.
func TestAccessTellsTheReplicas(t *testing.T) {
	node := func(r Role) *Node { return &Node{Role: r} }
	p, r := node(Primary), node(Replica)
	for want, nodes := range map[int][]*Node{0: {p}, 3: {p, r, r, r}, 1: {p, p, p, r, r, r}} {
		site := &Site{Nodes: nodes}
		if here, there := site.Copies(), site.Access().Site().Copies(); here != want || there != want {
			t.Errorf("%d nodes: %d and %d replicas, want %d", len(nodes), here, there, want)
		}
	}
}
