package kept

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hammerlock/locks/known"
)

// Classes of mutants that were not noticed, by the judgement of a person.
const (
	Equivalent = "equivalent"            // no user of the lock can see a difference
	ByDesign   = "not visible by design" // it is another correct lock
	Hole       = "hole"                  // verify should have noticed it
)

// MutantsFile has a line for each mutant. The command "make mutants" continues from this file.
const MutantsFile = "testdata/mutants.jsonl"

// Mutant is a lock with one change in its source, and the answers of its runs. Source is a digest of the files
// without the change. If no run notices a mutant, a person judges it, and writes Class and Why into the file.
type Mutant struct {
	Lock      string  `json:"lock"`
	Source    string  `json:"source"`
	File      string  `json:"file"`
	Line      int     `json:"line"`
	Before    string  `json:"before"`
	After     string  `json:"after"`
	Class     string  `json:"class,omitempty"` // empty = not judged yet
	Why       string  `json:"why,omitempty"`
	Explore   *Answer `json:"explore,omitempty"`
	Scenarios *Answer `json:"scenarios,omitempty"` // answer of all scenarios without explore
}

// Answer is the result of one run.
type Answer struct {
	Outcome string  `json:"outcome"`
	How     string  `json:"how,omitempty"` // the failed verdict, or why the run was not possible
	Seconds float64 `json:"seconds"`       // for explore: CPU time
	Made
}

// The outcomes of mutants.
const (
	Killed    = "killed"
	Broke     = "broke" // the run was not possible, which a user would notice
	Survived  = "survived"
	Undecided = "undecided" // the run was inconclusive
)

// Noticed reports whether a user would notice that something is wrong.
func (a *Answer) Noticed() bool {
	return a != nil && (a.Outcome == Killed || a.Outcome == Broke)
}

// Noticed reports whether explore or the scenarios noticed the mutant.
func (r *Mutant) Noticed() bool { return r.Explore.Noticed() || r.Scenarios.Noticed() }

// Same reports whether both mutants have the same change in the same source.
func (r *Mutant) Same(o *Mutant) bool {
	return r.Lock == o.Lock && r.Source == o.Source && r.File == o.File && r.Before == o.Before && r.After == o.After
}

// Judged reports whether a person has judged the mutant o, and o is the same change of the same lock.
func (r *Mutant) Judged(o *Mutant) bool {
	return o.Class != "" && r.Lock == o.Lock && r.After == o.After
}

type score struct{ all, same, hidden, explored, sampled, strained, together, open int }

func (s *score) count(r *Mutant) {
	s.all++
	if r.Class == Equivalent {
		s.same++
		return
	}
	if r.Explore.Noticed() {
		s.explored++
	}
	if r.Scenarios != nil {
		s.sampled++
	}
	if r.Scenarios.Noticed() {
		s.strained++
	}
	switch {
	case r.Noticed():
		s.together++
	case r.Class == ByDesign:
		s.hidden++
	case r.Explore == nil || r.Scenarios == nil:
		s.open++
	}
}

func (s *score) row(name string) string {
	of := max(s.all-s.same, 1)
	percent := func(n int) string { return fmt.Sprintf("%d, %d %%", n, 100*n/of) }
	return fmt.Sprintf("| %s | %d | %d | %s | %d of %d | %s | %d | %d %% | %d |\n", name, s.all, s.same,
		percent(s.explored), s.strained, s.sampled, percent(s.together),
		s.hidden, 100*s.together/max(of-s.hidden, 1), s.open)
}

// Score returns a table that counts the mutants by their answers: a row for each lock, and a row for all.
func Score(results []*Mutant) string {
	var b strings.Builder
	b.WriteString(Line(answered(results)...))
	fmt.Fprint(&b, "\n| lock | mutants | equivalent | explore notices | scenarios notice | together | by design | of "+
		"the others | not asked yet |\n|---|---|---|---|---|---|---|---|---|---|\n")
	var whole score
	for _, l := range known.Locks {
		var s score
		for _, r := range results {
			if r.Lock == l.Name {
				s.count(r)
				whole.count(r)
			}
		}
		if s.all > 0 {
			b.WriteString(s.row("`" + l.Name + "`"))
		}
	}
	b.WriteString(whole.row("**all**"))
	return b.String()
}

// answered returns the day, commit and number of cores for each answer.
func answered(results []*Mutant) (all []Made) {
	for _, r := range results {
		for _, a := range []*Answer{r.Explore, r.Scenarios} {
			if a != nil {
				all = append(all, a.Made)
			}
		}
	}
	return all
}

// A reason gets its own row in two cases: at least commonReason mutants have it, or its mutants are neither
// equivalent nor by design. The other reasons share one row.
const commonReason = 6

// survivors returns a table of the reasons why mutants were not noticed.
func survivors(results []*Mutant) string {
	type reason struct {
		class, why string
		locks      []string
		n          int
	}
	var all []*reason
	for _, r := range results {
		if r.Explore == nil || r.Noticed() {
			continue
		}
		class, why := cmp.Or(r.Class, "open"), cmp.Or(r.Why, "it has not been looked at yet")
		i := slices.IndexFunc(all, func(x *reason) bool { return x.class == class && x.why == why })
		if i < 0 {
			i, all = len(all), append(all, &reason{class: class, why: why})
		}
		if all[i].n++; !slices.Contains(all[i].locks, "`"+r.Lock+"`") {
			all[i].locks = append(all[i].locks, "`"+r.Lock+"`")
		}
	}
	slices.SortStableFunc(all, func(a, b *reason) int { return b.n - a.n })
	var b strings.Builder
	fmt.Fprint(&b, "| mutants | class | why they were not noticed | of |\n|---|---|---|---|\n")
	rest, reasons := 0, 0
	for _, x := range all {
		if x.n < commonReason && (x.class == Equivalent || x.class == ByDesign) {
			rest, reasons = rest+x.n, reasons+1
			continue
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", x.n, x.class, x.why, strings.Join(x.locks, ", "))
	}
	fmt.Fprintf(&b, "| %d | equivalent or by design | %d rarer reasons: testdata/mutants.jsonl | |\n", rest, reasons)
	return b.String()
}
