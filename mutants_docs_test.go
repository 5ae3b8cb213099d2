package hammerlock_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// judged is what a person made of a mutant that nobody noticed.
type judged struct {
	lock, after string // as the result has them
	class       string
	why         string
}

// The classes of mutants that nobody noticed.
const (
	equivalent = "equivalent"            // no user of the lock can tell it from the lock
	byDesign   = "not visible by design" // it is another lock, and as right
	hole       = "hole"                  // verify should have noticed it
)

// TestMutantsDocument: docs/MUTANTS.md says what testdata/mutants.jsonl has.
func TestMutantsDocument(t *testing.T) {
	all := readLines[mutantResult](t, mutantsFile)
	generated(t, "docs/MUTANTS.md", map[string]string{"score": mutantScore(all), "survivors": mutantSurvivors(t, all), "strangers": strangerTable(t), "broken": brokenTable(t)})
}

// class is that of a mutant nobody noticed.
func (r *mutantResult) class() (class, why string) {
	for _, j := range judgedMutants {
		if j.lock == r.Lock && j.after == r.After {
			return j.class, j.why
		}
	}
	return "", ""
}

// score counts mutants.
type score struct{ all, same, hidden, explored, sampled, strained, together, open int }

func (s *score) count(r *mutantResult) {
	s.all++
	if class, _ := r.class(); class == equivalent {
		s.same++
		return
	}
	if r.Explore.noticed() {
		s.explored++
	}
	if r.Scenarios != nil {
		s.sampled++
	}
	if r.Scenarios.noticed() {
		s.strained++
	}
	class, _ := r.class()
	switch {
	case r.noticed():
		s.together++
	case class == byDesign:
		s.hidden++
	case r.Explore == nil || r.Scenarios == nil:
		s.open++
	}
}

func (s *score) row(name string) string {
	of := max(s.all-s.same, 1)
	percent := func(n int) string { return fmt.Sprintf("%d, %d %%", n, 100*n/of) }
	return fmt.Sprintf("| %s | %d | %d | %s | %d of %d | %s | %d | %d %% | %d |\n", name, s.all, s.same, percent(s.explored), s.strained, s.sampled, percent(s.together),
		s.hidden, 100*s.together/max(of-s.hidden, 1), s.open)
}

// mutantScore is the table of numbers: a row a lock, and one for all.
func mutantScore(results []*mutantResult) string {
	var b strings.Builder
	first, last := "", ""
	for _, r := range results {
		for _, a := range []*asked{r.Explore, r.Scenarios} {
			if a != nil {
				last = max(last, a.Day)
				first = min(cmp.Or(first, a.Day), a.Day)
			}
		}
	}
	fmt.Fprintf(&b, "Measured from %s to %s.\n\n| lock | mutants | equivalent | explore notices | scenarios notice | together | by design | of the others | not asked yet |\n|---|---|---|---|---|---|---|---|---|---|\n", first, last)
	var whole score
	for _, l := range mutated {
		var s score
		for _, r := range results {
			if r.Lock == l.lock {
				s.count(r)
				whole.count(r)
			}
		}
		if s.all > 0 {
			b.WriteString(s.row("`" + l.lock + "`"))
		}
	}
	b.WriteString(whole.row("**all**"))
	return b.String()
}

// mutantSurvivors lists those that nobody noticed.
func mutantSurvivors(t *testing.T, results []*mutantResult) string {
	t.Helper()
	var b strings.Builder
	met := map[int]bool{}
	for i, j := range judgedMutants {
		met[i] = slices.ContainsFunc(results, func(r *mutantResult) bool { return r.Lock == j.lock && r.After == j.after })
		if !met[i] {
			t.Errorf("%s: there is no such mutant: %s", j.lock, j.after)
		}
	}
	for _, l := range mutated {
		for _, r := range results {
			if r.Lock != l.lock || r.Explore == nil || r.noticed() {
				continue
			}
			class, why := r.class()
			if class == "" {
				class, why = "open", "nobody has looked at it yet"
			}
			what := "explore has not noticed it; the scenarios are not asked yet"
			if r.Scenarios != nil {
				what = "nobody has noticed it"
			}
			fmt.Fprintf(&b, "`%s`, %s:%d: %s. **%s**: %s\n\n```diff\n- %s\n+ %s\n```\n\n", r.Lock, r.File, r.Line, what, class, why, r.Before, r.After)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
