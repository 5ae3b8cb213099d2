package compare

import (
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// Side is what is compared: repeated runs under a name.
type Side struct {
	Name string
	Runs []results.Run
}

// property is something that runs have in common, or not.
type property struct {
	name string
	of   func(*results.Run) string
}

// groupings are the keys that runs can be grouped by.
var groupings = []property{
	{"topology", func(r *results.Run) string { return r.Topology }},
	{"lock", func(r *results.Run) string { return r.Lock }},
	{"workers", func(r *results.Run) string { return fmt.Sprint(r.Workers) + " workers" }},
	{"keys", func(r *results.Run) string { return human.Quantity(r.Keys, "page") }},
	{"counter", func(r *results.Run) string { return r.Counter }},
	{"faults", func(r *results.Run) string { return human.List(r.Faults) }},
}

// Groupings names the keys that runs can be grouped by.
func Groupings() (names []string) {
	for _, g := range groupings {
		names = append(names, g.name)
	}
	return names
}

// agreement is those of topology and lock in which all sides have the same.
func agreement(sides []Side) (by []string) {
	for _, g := range groupings[:2] {
		if _, same := g.ofAll(sides); same {
			by = append(by, g.name)
		}
	}
	return by
}

// ofAll lists what the runs of each side have, and tells whether all sides have the same.
func (p *property) ofAll(sides []Side) (texts []string, same bool) {
	var first []string
	same = true
	for i, s := range sides {
		var values []string
		for k := range s.Runs {
			values = append(values, p.of(&s.Runs[k]))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		if i == 0 {
			first = values
		}
		same = same && slices.Equal(values, first)
		texts = append(texts, strings.Join(values, ", "))
	}
	return texts, same
}

// groupSides sorts runs into groups, in the order in which they first come; each has a list of runs for every side.
func groupSides(sides []Side, by []string) (names []string, groups map[string][][]*results.Run) {
	groups = map[string][][]*results.Run{}
	for i := range sides {
		for j := range sides[i].Runs {
			r := &sides[i].Runs[j]
			var parts []string
			for _, g := range groupings {
				if slices.Contains(by, g.name) {
					parts = append(parts, g.of(r))
				}
			}
			name := strings.Join(parts, " ")
			if groups[name] == nil {
				names = append(names, name)
				groups[name] = make([][]*results.Run, len(sides))
			}
			groups[name][i] = append(groups[name][i], r)
		}
	}
	return names, groups
}

// CheckGates checks every gate against the runs of every combination of topology and lock.
func CheckGates(gates []Gate, runs []results.Run) (all []GateResult) {
	names, groups := groupSides([]Side{{Runs: runs}}, []string{"topology", "lock"})
	for _, name := range names {
		for i := range gates {
			all = append(all, gates[i].Check(groups[name][0]))
		}
	}
	return all
}
