// Command mutants tests how well verify works. It makes copies of correct locks with one mistake in each copy, a
// mutant, and checks whether verify notices the mistake. The command "verify explore" comes first, because it takes
// seconds and needs no server. The scenarios follow, for mutants that explore missed. Each answer is saved
// immediately, and the next call of the command continues from there.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"hammerlock/tools/kept"
)

type options struct {
	of, stage    string
	limit        time.Duration
	jobs, sample int
	again        bool
}

func main() {
	var o options
	flag.StringVar(&o.of, "of", "all", "locks whose mutants are run, separated by commas; or all")
	flag.StringVar(&o.stage, "stage", "both",
		"who is asked: explore, or both: the scenarios about those that explore does not find")
	flag.DurationVar(&o.limit, "for", 3*time.Hour, "how long; what is not done by then is done by the next run")
	flag.IntVar(&o.jobs, "jobs", 1, "how many mutants are run at the same time")
	flag.IntVar(&o.sample, "sample", 0,
		"how many mutants, drawn at random, the scenarios are asked about even if explore has found them")
	flag.BoolVar(&o.again, "again", false, "ask again about those that were not found")
	flag.Parse()
	if err := mutants(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func mutants(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	m := &asking{options: o}
	if m.made, err = kept.Now(ctx); err != nil {
		return err
	}
	all, err := mutantsOfLocks()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(x mutant) bool { return !m.chosen(x.lock) })
	if len(all) == 0 {
		return fmt.Errorf("no mutants of %s: there are all, and those of %s", o.of,
			strings.Join(mutatedLocks(), ", "))
	}
	if err := m.open(kept.MutantsFile); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(m.known), func(r *kept.Mutant) bool { return m.chosen(r.Lock) })
	if m.verify, all, err = buildMutants(ctx, all, dir); err != nil {
		return err
	}
	m.settle(all, others)
	err = m.ask(ctx, all)
	fmt.Print("\n", kept.Score(m.known))
	return err
}

// chosen reports whether the user wants to test mutants of this lock.
func (m *asking) chosen(lock string) bool {
	return m.of == "all" || slices.Contains(strings.Split(m.of, ","), lock)
}

func digest(texts ...[]byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(bytes.Join(texts, nil)))[:8]
}

func mutatedLocks() (names []string) {
	for _, l := range mutated {
		names = append(names, l.lock)
	}
	return names
}
