package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/internal/human"
	"hammerlock/results"
)

// telling lists the properties that can tell the runs of a page apart. titles prefers those that come first.
var telling = []func(*results.Run) string{
	func(r *results.Run) string {
		if r.Explored {
			return "" // in virtual time
		}
		return r.Topology
	},
	func(r *results.Run) string { return r.Lock },
	func(r *results.Run) string {
		if r.Explored {
			return cmp.Or(r.Scenario, "explore")
		}
		return r.Scenario
	},
	func(r *results.Run) string { return human.Quantity(r.Workers, "worker") },
	func(r *results.Run) string { return human.Quantity(r.Keys, "page") },
	(*results.Run).Loop,
	func(r *results.Run) string { return strings.Join(r.Faults, ",") },
	func(r *results.Run) string { return "lease " + human.Duration(time.Duration(r.TTL)) },
	func(r *results.Run) string { return "hold " + human.Duration(time.Duration(r.Hold)) },
	func(r *results.Run) string { return "backoff " + human.Duration(time.Duration(r.Retry)) },
	func(r *results.Run) string { return human.Quantity(r.Processes, "process") },
	func(r *results.Run) string { return "counter " + r.Counter },
	func(r *results.Run) string { return r.Settings["server"] },
}

// titles names each run by the properties in which the runs differ. Runs that do not differ get numbers. The text
// common has the topology, lock and scenario that all runs share.
func titles(runs []saved) (names []string, common string) {
	names = make([]string, len(runs))
	var same []string
	for i, of := range telling {
		longer, values := make([]string, len(runs)), map[string]bool{}
		for k := range runs {
			text := of(runs[k].Run)
			if longer[k] = joinTitle(names[k], text); text != "" || i == 2 {
				values[text] = true
			}
		}
		switch {
		case len(values) == 1 && i < 3:
			same = append(same, slices.Collect(maps.Keys(values))[0])
		case len(values) > 1 && i < 3, distinct(longer) > distinct(names):
			names = longer
		}
	}
	common = joinTitle(same...)
	seen, all := map[string]int{}, map[string]int{}
	for _, name := range names {
		all[name]++
	}
	for i, name := range names {
		if seen[name]++; name == "" {
			names[i] = common
		}
		if all[name] > 1 {
			names[i] = fmt.Sprintf("%s #%d", names[i], seen[name])
		}
	}
	return names, common
}

func joinTitle(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " · ")
}

func distinct(names []string) int { return len(slices.Compact(slices.Sorted(slices.Values(names)))) }
