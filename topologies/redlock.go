package topologies

import "time"

var redlock = Independent(5)

// Independent returns the topology redlock with n servers.
func Independent(n int) Spec {
	return Spec{
		Name:       "redlock",
		Doc:        "five independent servers without replicas: a lock needs a majority of them",
		Sites:      n,
		Nodes:      n,
		Recovery:   500 * time.Millisecond,
		embeddable: true,
		shape: func(t *Topology) {
			for i := range n {
				name := nodeName("n", i)
				t.site(name, t.add(name, Primary, dataNode))
			}
		},
		healthy: serving,
	}
}
