package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the counters in a file

	"hammerlock/faults"
	"hammerlock/internal/crew"
	"hammerlock/internal/human"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/results"
	"hammerlock/scenarios"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// catalogue lists the values of a flag, by name.
type catalogue[T any] struct {
	all  []T
	name func(T) string
	// own reads what is in no catalogue; nil = there is nothing else. It is false if the text is a name.
	own func(text string) (t T, is bool, err error)
	// join puts together what a list was split into although it is one item; nil = an item has no comma.
	join func(parts []string) []string
	// groups are names that stand for several of them in a list; nil = there are none.
	groups map[string]func(T) bool
}

func (c catalogue[T]) names() []string { return human.Names(c.all, c.name) }

func (c catalogue[T]) String() string { return strings.Join(c.names(), ", ") }

// find returns what has the name, or an error that names what there is.
func (c catalogue[T]) find(name string) (t T, err error) {
	if c.own != nil {
		if t, is, err := c.own(name); is {
			return t, err
		}
	}
	if i := slices.Index(c.names(), name); i >= 0 {
		return c.all[i], nil
	}
	return t, errors.New(human.Instead(name, c.names()))
}

// words is a catalogue of names alone.
func words[T ~string](all ...T) catalogue[T] {
	return catalogue[T]{all: all, name: func(t T) string { return string(t) }}
}

// taps say whether servers' replication streams are read where they can be.
var taps = catalogue[bool]{all: []bool{true, false}, name: func(read bool) string { return map[bool]string{true: "auto", false: "off"}[read] }}

// syncs say how often servers sync their log of writes; off = they have none.
var syncs = catalogue[topologies.Durability]{all: []topologies.Durability{"", topologies.SyncEverySecond, topologies.SyncAlways},
	name: func(d topologies.Durability) string { return cmp.Or(string(d), "off") }}

// autoLock is the name that asks for the lock a topology is made for, which a plan knows as the zero Spec.
const autoLock = "auto"

// lockNames lists the locks that are right. The others are many, and --list says what is wrong with each.
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
	return fmt.Sprintf("%s; of libraries: %s; or one of %d that are broken, to see how: --list", strings.Join(own, ", "), strings.Join(libraries, ", "), broken)
}

// everyScenario is the name that asks for all scenarios that apply.
const everyScenario = "all"

var (
	allScenarios = catalogue[scenarios.Scenario]{all: append([]scenarios.Scenario{{Name: everyScenario}}, allStrains...), name: func(s scenarios.Scenario) string { return s.Name }}
	allMetrics   = catalogue[results.Metric]{all: results.Metrics, name: func(m results.Metric) string { return m.Name }}
)

// everyTopology is the name that asks for all topologies.
const everyTopology = "all"

func topologiesOf(k crew.Catalogue) catalogue[topologies.Spec] {
	return catalogue[topologies.Spec]{all: k.Topologies, name: func(s topologies.Spec) string { return s.Name },
		groups: map[string]func(topologies.Spec) bool{everyTopology: func(topologies.Spec) bool { return true }}}
}

func countersOf(k crew.Catalogue) catalogue[workload.CounterSpec] {
	return catalogue[workload.CounterSpec]{all: k.Counters, name: func(s workload.CounterSpec) string { return s.Name }}
}

func locksOf(k crew.Catalogue) catalogue[locks.Spec] {
	c := catalogue[locks.Spec]{all: append([]locks.Spec{{}}, k.Locks...), name: lockName, own: program, groups: lockGroups}
	c.join = func(parts []string) []string { return programs(parts, c.names()) }
	return c
}

// lockGroups are the names of several locks at once: verify --expect takes them.
var lockGroups = map[string]func(locks.Spec) bool{
	"all":    func(s locks.Spec) bool { return s.Name != "" },
	"right":  func(s locks.Spec) bool { return s.Name != "" && s.Broken == "" },
	"broken": func(s locks.Spec) bool { return s.Broken != "" },
}

// faultNames lists the values of --fault, without times and points.
func faultNames() []string { return append([]string{faults.Auto, faults.None}, faults.Names()...) }

// knows is all that the command knows by name, and its worker processes with it.
func (e Env) knows() crew.Catalogue {
	return crew.Catalogue{
		Topologies: slices.Concat(topologies.All, e.More.Topologies), Locks: slices.Concat(known.Locks, e.More.Locks),
		Counters: slices.Concat(workload.AllCounters, e.More.Counters),
	}
}
