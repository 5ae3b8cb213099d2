// Package beyond lists servers that are not Redis, locks on them, and counters in databases. It is a module of its own,
// so that the main module does not depend on their clients.
package beyond

import (
	"slices"

	"hammerlock/beyond/etcd"
	"hammerlock/beyond/mysql"
	"hammerlock/beyond/postgres"
	"hammerlock/beyond/zookeeper"
	"hammerlock/internal/crew"
)

// Catalogue extends the commands of the main module.
var Catalogue = crew.Catalogue{
	Topologies: slices.Concat(postgres.Topologies, mysql.Topologies, etcd.Topologies, zookeeper.Topologies),
	Locks:      slices.Concat(postgres.Locks, mysql.Locks, etcd.Locks, zookeeper.Locks),
	Counters:   slices.Concat(postgres.Counters, mysql.Counters),
}
