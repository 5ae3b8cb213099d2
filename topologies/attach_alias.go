package topologies

import (
	"fmt"
	"slices"
)

// independent returns an error if an earlier address leads to the same server and database: two names of one server
// are not two independent sites. Two databases of one server are accepted, although they fail together.
func (t *Topology) independent(n *Node, e Endpoint) error {
	same, a := t.alias(n), t.Spec.attached
	if same < 0 {
		return nil
	}
	text := fmt.Sprintf("%s and %s are the same server (run_id %s)", a.Endpoints[same].Addr, e.Addr, n.runID)
	if a.Endpoints[same].DB == e.DB {
		return fmt.Errorf("%s: --addr names independent servers, each once", text)
	}
	if a.Tell != nil {
		a.Tell(text + ", in two databases: they fail together, as independent servers do not")
	}
	return nil
}

// alias returns the index of an earlier node that is the same server as the last node, or -1 if there is none.
func (t *Topology) alias(n *Node) int {
	return slices.IndexFunc(t.Nodes[:len(t.Nodes)-1], func(m *Node) bool { return m.runID == n.runID && n.runID != "" })
}
