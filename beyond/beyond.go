// Package beyond lists what the commands of this module know besides those of the main one: servers that are not Redis,
// locks on them, and counters in databases. It is a module of its own so that their clients are no dependencies of the
// main one.
package beyond

import (
	"slices"

	"hammerlock/beyond/etcd"
	"hammerlock/beyond/mysql"
	"hammerlock/beyond/postgres"
	"hammerlock/beyond/zookeeper"
	"hammerlock/internal/crew"
)

// Catalogue is all of it.
var Catalogue = crew.Catalogue{
	Topologies: slices.Concat(postgres.Topologies, mysql.Topologies, etcd.Topologies, zookeeper.Topologies),
	Locks:      slices.Concat(postgres.Locks, mysql.Locks, etcd.Locks, zookeeper.Locks),
	Counters:   slices.Concat(postgres.Counters, mysql.Counters),
}
