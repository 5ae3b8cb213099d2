package cli

import (
	"errors"
	"slices"
	"strings"

	"hammerlock/faults"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// catalogue is what the values of a flag are names of.
type catalogue[T any] struct {
	all  []T
	name func(T) string
}

func (c catalogue[T]) names() []string {
	var names []string
	for _, t := range c.all {
		names = append(names, c.name(t))
	}
	return names
}

func (c catalogue[T]) String() string { return strings.Join(c.names(), ", ") }

// find returns what has the name, or an error that names what there is.
func (c catalogue[T]) find(name string) (t T, err error) {
	if i := slices.Index(c.names(), name); i >= 0 {
		return c.all[i], nil
	}
	return t, errors.New(human.Instead(name, c.names()))
}

// words is a catalogue of names alone.
func words[T ~string](all ...T) catalogue[T] {
	return catalogue[T]{all, func(t T) string { return string(t) }}
}

// autoLock is the name that asks for the lock a topology is made for, which a plan knows as the zero Spec.
const autoLock = "auto"

// everyScenario is the name that asks for all scenarios that apply.
const everyScenario = "all"

var (
	allTopologies = catalogue[topologies.Spec]{topologies.All, func(s topologies.Spec) string { return s.Name }}
	allScenarios  = catalogue[scenarios.Scenario]{append([]scenarios.Scenario{{Name: everyScenario}}, scenarios.All...), func(s scenarios.Scenario) string { return s.Name }}
	allCounters   = catalogue[workload.CounterSpec]{workload.AllCounters, func(s workload.CounterSpec) string { return s.Name }}
	allMetrics    = catalogue[results.Metric]{results.Metrics, func(m results.Metric) string { return m.Name }}
	allLocks      = catalogue[locks.Spec]{append([]locks.Spec{{}}, locks.All...), func(s locks.Spec) string {
		if s.Name == "" {
			return autoLock
		}
		return s.Name
	}}
)

// faultNames are what --fault takes, but for times and points.
func faultNames() []string { return append([]string{faults.Auto, faults.None}, faults.Names()...) }

// workersKnow is what worker processes know by name.
func workersKnow() crew.Catalogue {
	return crew.Catalogue{Locks: locks.All, Counters: workload.AllCounters}
}
