package topologies

import "testing"

// TestASpecTellsTheReplicas: a Spec has the same number of replicas as its sites.
func TestASpecTellsTheReplicas(t *testing.T) {
	for _, s := range All {
		top := up(t, s.Name, Options{})
		if got := top.Sites[0].Copies(); got != s.Copies {
			t.Errorf("%s: a site has %d replicas of each primary, its spec says %d", s.Name, got, s.Copies)
		}
	}
}

// TestAccessTellsTheReplicas: a site, and the site that a worker process makes from its Access, have the same number
// of replicas.
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
