package compare

import (
	"fmt"
	"slices"
	"strings"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// Side is one side of a comparison: a name, and repeated runs.
type Side struct {
	Name string
	Runs []results.Run
}

// property is a setting that may differ between runs.
type property struct {
	name string
	of   func(*results.Run) string
	use  use
}

// use is a set of flags: they say for what a property is used.
type use int

const (
	key    use = 1 << iota // runs can be grouped by it
	repeat                 // repetitions of a run must have the same value
	note                   // a comparison mentions it if the sides differ
)

var properties = []property{
	{"topology", func(r *results.Run) string { return r.Topology }, key | repeat | note},
	{"lock", func(r *results.Run) string { return r.Lock }, key | repeat | note},
	{"load", func(r *results.Run) string { load, _, _ := strings.Cut(r.Workload(), " each"); return load }, note},
	{"workers", func(r *results.Run) string { return fmt.Sprint(r.Workers) + " workers" }, key},
	{"keys", func(r *results.Run) string { return human.Quantity(r.Keys, "page") }, key},
	{"processes", func(r *results.Run) string { return fmt.Sprint(r.Processes) }, note},
	{"counter", func(r *results.Run) string { return r.Counter }, key | note},
	{"faults", func(r *results.Run) string { return human.List(r.Faults) }, key | note},
	{"server", (*results.Run).Servers, note},
	{"suite", func(r *results.Run) string { return r.Environment.Suite }, note},
	{"machine", func(r *results.Run) string {
		return fmt.Sprintf("%s, %d cores", r.Environment.CPU, r.Environment.Cores)
	}, note},
}

// used lists the names of the properties that have one of these flags.
func used(as use) (names []string) {
	for _, p := range properties {
		if p.use&as != 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// Groupings lists the properties by which users can group runs.
func Groupings() []string { return used(key) }

// agreement returns the default grouping: topology and lock, unless the sides differ in these.
func agreement(sides []Side) (by []string) {
	for _, p := range properties {
		if _, same := p.ofAll(sides); same && p.use&repeat != 0 {
			by = append(by, p.name)
		}
	}
	return by
}

// ofAll returns the values of the property on each side as a text, and whether all sides have the same values.
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

// groupSides divides the runs into groups, by the properties in the argument by. Each group has a list of runs for
// each side; names has the groups in the order of their first runs.
func groupSides(sides []Side, by []string) (names []string, groups map[string][][]*results.Run) {
	groups = map[string][][]*results.Run{}
	for i := range sides {
		for j := range sides[i].Runs {
			r := &sides[i].Runs[j]
			var parts []string
			for _, p := range properties {
				if slices.Contains(by, p.name) {
					parts = append(parts, p.of(r))
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

// CheckGates checks every Gate, separately for each combination of topology and lock.
func CheckGates(gates []Gate, runs []results.Run) (all []GateResult) {
	names, groups := groupSides([]Side{{Runs: runs}}, used(repeat))
	for _, name := range names {
		for i := range gates {
			all = append(all, gates[i].Check(groups[name][0]))
		}
	}
	return all
}
