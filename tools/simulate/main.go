// Command simulate tests the judge. It makes histories of right and wrong locks under random disturbances, and has
// them judged. The judge must not accuse a right lock, and must not miss a violation that the client's record proves.
// The command shares no code with the judge.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	j := job{ask: judge}
	flag.IntVar(&j.n, "n", 5000, "how many histories of right locks, and how many of wrong ones")
	flag.Uint64Var(&j.seed, "seed", 1, "the first seed")
	flag.BoolVar(&j.facts, "facts", false, "put irrelevant facts into failing histories: none may hide the failure")
	flag.StringVar(&j.kind, "kind", "", "only this kind of lock")
	flag.StringVar(&j.wrong, "wrong", "", `only this mistake; "-" for right locks, "any" for all wrong ones`)
	flag.BoolVar(&long, "long", false,
		"judge each a second time as a long history is judged, with all arrays in files: the verdicts must be the same")
	flag.BoolVar(&certifies, "certify", false, "have the verdicts on each certified: no certificate may be refused")
	flag.StringVar(&j.dir, "out", "bin/simulated", "where histories are saved that are judged wrongly")
	flag.Parse()
	ok, err := j.run(os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case !ok:
		os.Exit(1)
	}
}
