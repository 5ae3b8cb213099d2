package hammerlock_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/internal/cli"
	"hammerlock/locks"
	"hammerlock/locks/known"
	"hammerlock/topologies"
)

// brokenFile keeps what the default verify says of the catalogue's broken locks, a line each.
const brokenFile = "testdata/broken.jsonl"

// brokenLocks are those that verify judges by default, each with the first topology that it is for.
func brokenLocks() (all []mutant) {
	for _, l := range known.Locks {
		on := slices.IndexFunc(topologies.All, func(s topologies.Spec) bool {
			return l.Sites.Fits(s.Sites) && (s.Sites > 1) == (l.Sites == locks.ManySites)
		})
		if l.Broken != "" && on >= 0 && len(l.Needs) == 0 {
			all = append(all, mutant{lock: l.Name, name: l.Name, topology: topologies.All[on].Name})
		}
	}
	return all
}

// TestBrokenByDefault asks the default verify about each broken lock of the catalogue, until something fails: -mutants broken.
func TestBrokenByDefault(t *testing.T) {
	if *mutantsOf != "broken" {
		t.Skip("make mutants MUTANTS_OF=broken")
	}
	verify := filepath.Join(t.TempDir(), "verify")
	if out, err := exec.Command("go", "build", "-o", verify, "./cmd/verify").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := &mutantRun{t: t, verify: verify, file: brokenFile, known: readLines[mutantResult](t, brokenFile)}
	all := brokenLocks()
	m.settle(all, nil)
	m.each(all, time.Now(), func(_ mutant, r *mutantResult) bool { return !r.Scenarios.noticed() }, func(x mutant, r *mutantResult) {
		var d cli.Document
		begun := time.Now()
		a, _ := m.run(x, []string{"--topology", x.topology, "--fail-fast"}, &d)
		if a.Outcome == "" {
			a.Outcome, a.How = outcomes[d.Exit.Code], fmt.Sprintf("%.160s", d.Exit.Reason)
		}
		a.Seconds = seconds(time.Since(begun))
		r.Scenarios = a
	})
}

// accusation is how verify says why it failed: topology, lock, scenario, checker and cause.
var accusation = regexp.MustCompile(`^\S+ (\S+) ([a-z-]+): [a-z-]+: ([a-z-]+)`)

// brokenTable says of each what the default verify came to, and whether that is the cause that its entry names.
func brokenTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	var caught, named int
	var took []float64
	fmt.Fprintln(&b, "| lock | on | caught by | as | s |\n|---|---|---|---|---|")
	results, all := readLines[mutantResult](t, brokenFile), brokenLocks()
	for _, x := range all {
		i := slices.IndexFunc(results, func(r *mutantResult) bool { return r.Lock == x.lock })
		if i < 0 || results[i].Scenarios == nil {
			fmt.Fprintf(&b, "| `%s` | %s | not asked yet | | |\n", x.lock, x.topology)
			continue
		}
		a := results[i].Scenarios
		by, as := "**"+a.Outcome+"**", a.How
		if found := accusation.FindStringSubmatch(a.How); a.noticed() && found != nil && found[1] == x.lock {
			by, as = found[2], found[3]
			caught++
			took = append(took, a.Seconds)
			if slices.Contains(causesOf(x.lock), as) {
				named++
				as += ", as its entry says"
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %.1f |\n", x.lock, x.topology, by, as, a.Seconds)
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
