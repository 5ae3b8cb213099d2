package cli

import (
	"hammerlock/internal/crew"
	"hammerlock/locks"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// autoLock is the name that asks for the lock a topology is made for, which a plan knows as the zero Spec.
const autoLock = "auto"

func allLocks() []locks.Spec { return append([]locks.Spec{{}}, locks.All...) }

func lockName(s locks.Spec) string {
	if s.Name == "" {
		return autoLock
	}
	return s.Name
}

func topologyName(s topologies.Spec) string { return s.Name }

func lockNames() []string { return names(allLocks(), lockName) }

// workersKnow is what worker processes know by name.
func workersKnow() crew.Catalogue {
	return crew.Catalogue{Locks: locks.All, Counters: workload.AllCounters}
}

func names[T any](all []T, name func(T) string) []string {
	var list []string
	for _, t := range all {
		list = append(list, name(t))
	}
	return list
}
