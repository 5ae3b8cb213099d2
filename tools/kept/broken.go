package kept

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hammerlock/locks/known"
)

// BrokenFile keeps what the default verify says of the catalogue's broken locks, a line each.
const BrokenFile = "testdata/broken.jsonl"

// accusation is how verify says why it failed: topology, lock, scenario, checker and cause.
var accusation = regexp.MustCompile(`^\S+ (\S+) ([a-z-]+): [a-z-]+: ([a-z-]+)`)

// brokenTable says of each what the default verify came to, and whether that is the cause that its entry names.
func brokenTable(results []*Mutant) string {
	var b strings.Builder
	var caught, named int
	var took []float64
	all := BrokenPairs()
	b.WriteString(Line(answered(results)...) + "\n")
	fmt.Fprintln(&b, "| lock | on | caught by | as | s |\n|---|---|---|---|---|")
	for _, x := range all {
		i := slices.IndexFunc(results, func(r *Mutant) bool { return r.Lock == x.Lock })
		if i < 0 || results[i].Scenarios == nil {
			fmt.Fprintf(&b, "| `%s` | %s | not measured yet: make mutants MUTANTS_OF=broken | | |\n", x.Lock, x.Topology)
			continue
		}
		a := results[i].Scenarios
		by, as := "**"+a.Outcome+"**", a.How
		if found := accusation.FindStringSubmatch(a.How); a.Noticed() && found != nil && found[1] == x.Lock {
			by, as = found[2], found[3]
			caught++
			took = append(took, a.Seconds)
			if slices.Contains(causesOf(x.Lock), as) {
				named++
				as += ", as its entry says"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %.1f |\n", x.Lock, x.Topology, by, as, a.Seconds)
	}
	slices.Sort(took)
	if len(took) > 0 {
		fmt.Fprintf(&b, "\nCaught: %d of %d, %d of them with a cause that its entry names; after %.1f s (median), %.1f s at most, with the start of the servers.\n",
			caught, len(all), named, took[len(took)/2], took[len(took)-1])
	}
	return b.String()
}

// causesOf are those that a lock's entry names.
func causesOf(lock string) (all []string) {
	spec, _ := known.Find(lock)
	for _, c := range spec.Caught {
		all = append(all, c.Cause)
	}
	for _, u := range spec.Under {
		all = append(all, u.Cause)
	}
	return all
}
