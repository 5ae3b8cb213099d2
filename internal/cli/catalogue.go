package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // driver for workload counters that are kept in a file

	"hammerlock/faults"
	"hammerlock/internal/crew"
	"hammerlock/internal/settings"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// taps are the values of --tap: "auto" means true, "off" means false.
var taps = settings.Catalogue[bool]{All: []bool{true, false},
	Name: func(read bool) string { return map[bool]string{true: "auto", false: "off"}[read] }}

// syncs are the values of --aof: how often servers sync their append-only file. With "off" they have no such file.
var syncs = settings.Catalogue[topologies.Durability]{All: []topologies.Durability{"", topologies.SyncEverySecond,
	topologies.SyncAlways},
	Name: func(d topologies.Durability) string { return cmp.Or(string(d), "off") }}

// lockNames lists the correct locks, for the help of --lock. It gives only the number of broken locks, which have
// deliberate defects.
func lockNames(all []locks.Spec) string {
	own, libraries, broken := []string{autoLock}, []string{}, 0
	for _, s := range all {
		switch {
		case s.Broken != "":
			broken++
		case s.Library:
			libraries = append(libraries, s.Name)
		default:
			own = append(own, s.Name)
		}
	}
	return fmt.Sprintf("%s; of libraries: %s; or one of %d that are broken, to see how: --list",
		strings.Join(own, ", "), strings.Join(libraries, ", "), broken)
}

// everyScenario is the value of --scenario for all scenarios that apply to a lock and topology.
const everyScenario = "all"

var (
	allScenarios = settings.Catalogue[scenarios.Scenario]{All: append([]scenarios.Scenario{{Name: everyScenario}},
		allStrains...), Name: func(s scenarios.Scenario) string { return s.Name }}
	allMetrics = settings.Catalogue[results.Metric]{All: results.Metrics,
		Name: func(m results.Metric) string { return m.Name }}
)

// everyTopology is the value of --topology for all topologies.
const everyTopology = "all"

func topologiesOf(k crew.Catalogue) settings.Catalogue[topologies.Spec] {
	return settings.Catalogue[topologies.Spec]{All: k.Topologies,
		Name:   func(s topologies.Spec) string { return s.Name },
		Groups: map[string]func(topologies.Spec) bool{everyTopology: func(topologies.Spec) bool { return true }}}
}

func countersOf(k crew.Catalogue) settings.Catalogue[workload.CounterSpec] {
	return settings.Catalogue[workload.CounterSpec]{All: k.Counters,
		Name: func(s workload.CounterSpec) string { return s.Name }}
}

func locksOf(k crew.Catalogue) settings.Catalogue[locks.Spec] {
	c := settings.Catalogue[locks.Spec]{All: append([]locks.Spec{{}}, k.Locks...), Name: lockName, Own: program,
		Groups: lockGroups}
	c.Join = func(parts []string) []string { return programs(parts, c.Names()) }
	return c
}

// lockGroups are values of --lock that stand for several locks. They are for verify --expect.
var lockGroups = map[string]func(locks.Spec) bool{
	"all":    func(s locks.Spec) bool { return s.Name != "" },
	"right":  func(s locks.Spec) bool { return s.Name != "" && s.Broken == "" },
	"broken": func(s locks.Spec) bool { return s.Broken != "" },
}

// faultNames lists the values of --fault, without suffixes such as @2s (a time) or @granted (a point of a visit).
func faultNames() []string { return append([]string{faults.Auto, faults.None}, faults.Names()...) }

// The method knows returns the topologies, locks and counters that the command and its worker processes can find by
// name.
func (e Env) knows() crew.Catalogue {
	return crew.Catalogue{
		Topologies: slices.Concat(topologies.All, e.More.Topologies), Locks: slices.Concat(known.Locks, e.More.Locks),
		Counters: slices.Concat(workload.AllCounters, e.More.Counters),
	}
}

// exploreScenario is the scenario that verify runs first. It runs without servers, so it is not in package scenarios,
// whose scenarios the harness runs on a topology.
var exploreScenario = scenarios.Scenario{
	Name: "explore",
	Doc:  "every order of messages with at most one deviation, in virtual time, without a server; see verify explore",
}

// allStrains lists all scenarios of verify.
var allStrains = append([]scenarios.Scenario{exploreScenario}, scenarios.All...)

func isExplore(s scenarios.Scenario) bool { return s.Name == exploreScenario.Name }
