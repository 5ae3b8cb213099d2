package database

import (
	"database/sql"

	"hammerlock/topologies"
	"hammerlock/workload"
)

// counterConnections bounds those of a process.
const counterConnections = 32

// Counters are a counter in a server of its own, and the same with fences.
func Counters(server topologies.Spec, what string, connect func(*topologies.Site) (*sql.DB, error), s workload.Statements) []workload.CounterSpec {
	open := func(e workload.CounterEnv) (*workload.SQLCounter, error) {
		db, err := connect(e.Site)
		if err != nil {
			return nil, err
		}
		db.SetMaxOpenConns(counterConnections)
		db.SetMaxIdleConns(counterConnections)
		return workload.NewSQLCounter(db, s), nil
	}
	return []workload.CounterSpec{{
		Name:   server.Name,
		Doc:    "a " + what + " of its own that no fault touches",
		Server: server,
		Open: func(e workload.CounterEnv) (workload.Counter, error) {
			c, err := open(e)
			return c, err
		},
	}, {
		Name:   server.Name + "-fenced",
		Doc:    "the same, fenced by the condition of its UPDATE: fence < the token of the store",
		Server: server,
		Fenced: true,
		Open: func(e workload.CounterEnv) (workload.Counter, error) {
			c, err := open(e)
			if err != nil {
				return nil, err
			}
			return c.Fenced(), nil
		},
	}}
}
