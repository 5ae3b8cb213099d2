package database

import (
	"hammerlock/topologies"
	"hammerlock/workload"
)

// counterConnections is the largest number of connections of a process.
const counterConnections = 32

// Counters returns two counters on a separate server, without and with fences.
func (s *Server) Counters(on topologies.Spec) []workload.CounterSpec {
	open := func(e workload.CounterEnv, fenced bool) (workload.Counter, error) {
		db, err := s.Pool(e.Site, 0)
		if err != nil {
			return nil, err
		}
		return workload.NewSQLCounter(bound(db, counterConnections), s.Pages, fenced), nil
	}
	return []workload.CounterSpec{{
		Name:   s.Name,
		Doc:    "a " + s.Engine + " of its own that no fault touches",
		Server: on,
		Open:   func(e workload.CounterEnv) (workload.Counter, error) { return open(e, false) },
	}, {
		Name:   s.Name + "-fenced",
		Doc:    "the same, fenced by the condition of its UPDATE: fence < the token of the store",
		Server: on,
		Fenced: true,
		Open:   func(e workload.CounterEnv) (workload.Counter, error) { return open(e, true) },
	}}
}
