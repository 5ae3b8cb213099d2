package workload

var topologyStore = CounterSpec{
	Name:  "topology",
	Doc:   "the system under test, which can lose writes, too",
	Place: OnTopology,
	Open:  openRedis,
}

var topologyFenced = CounterSpec{
	Name:   "topology-fenced",
	Doc:    "the same, fenced: what it forgets in a failover it forgets with the token",
	Place:  OnTopology,
	Fenced: true,
	Open:   openRedisFenced,
}
