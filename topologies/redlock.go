package topologies

import "time"

var redlock = Spec{
	Name:       "redlock",
	Doc:        "five independent servers without replicas: a lock needs a majority of them",
	Sites:      5,
	Nodes:      5,
	Recovery:   500 * time.Millisecond,
	embeddable: true,
	shape: func(t *Topology) {
		for i := range 5 {
			name := nodeName("n", i)
			t.site(name, t.add(name, Primary, dataNode))
		}
	},
	healthy: serving,
}
