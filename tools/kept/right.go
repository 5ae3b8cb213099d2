package kept

import (
	"fmt"
	"slices"
	"strings"

	"hammerlock/locks/known"
	"hammerlock/topologies"
)

// RightFile keeps what the default verify says of right locks, a line for each lock, topology and seed.
const RightFile = "testdata/right.jsonl"

// Right is what became of a run of the default verify.
type Right struct {
	Pair
	Seed         uint64   `json:"seed"`
	Exit         int      `json:"exit"`
	Passed       int      `json:"passed"`
	Inconclusive []string `json:"inconclusive,omitempty"` // names of scenarios
	Failed       []string `json:"failed,omitempty"`
	NotRun       int      `json:"not_run"`
	Seconds      float64  `json:"seconds"`
	Load         string   `json:"load"` // average of the last minute, when it was over
	Made
}

// rightTable says lock by lock what the default verify came to, and what it came to in all.
func rightTable(all []*Right) string {
	var b strings.Builder
	var made []Made
	for _, r := range all {
		made = append(made, r.Made)
	}
	b.WriteString(Line(made...) + "\n| lock |")
	for _, s := range topologies.All {
		fmt.Fprintf(&b, " %s |", s.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(topologies.All)) + "\n")
	for _, l := range known.Locks {
		if !slices.ContainsFunc(RightPairs(), func(p Pair) bool { return p.Lock == l.Name }) {
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", l.Name)
		for _, s := range topologies.All {
			fmt.Fprintf(&b, " %s |", rightCell(Pair{l.Name, s.Name}, all))
		}
		b.WriteString("\n")
	}
	return b.String() + "\n" + rightSum(all)
}

// rightCell is what the runs of a lock on a topology came to.
func rightCell(of Pair, all []*Right) string {
	passed, names := 0, map[string]int{}
	for _, r := range all {
		if r.Pair != of {
			continue
		}
		passed += r.Passed
		for _, name := range r.Failed {
			names["**FAIL** "+name]++
		}
		for _, name := range r.Inconclusive {
			names[name+"?"]++
		}
	}
	var words []string
	for name, n := range names {
		if n > 1 {
			name += fmt.Sprintf(" ×%d", n)
		}
		words = append(words, name)
	}
	slices.Sort(words)
	if len(words) == 0 && passed == 0 && slices.Contains(RightPairs(), of) {
		return "not measured yet"
	}
	if passed > 0 {
		words = slices.Insert(words, 0, fmt.Sprintf("pass ×%d", passed))
	}
	return strings.Join(words, "<br>")
}

// rightSum counts, seed by seed.
func rightSum(all []*Right) string {
	var b strings.Builder
	b.WriteString("| seed | runs | scenarios that passed | inconclusive | FAIL | seconds a run, median | at most | load average, median |\n|---|---|---|---|---|---|---|---|\n")
	for len(all) > 0 {
		n := 0
		var passed, undecided, failed int
		var took []float64
		var loads []string
		for ; n < len(all) && all[n].Seed == all[0].Seed; n++ {
			r := all[n]
			passed, undecided, failed = passed+r.Passed, undecided+len(r.Inconclusive), failed+len(r.Failed)
			took, loads = append(took, r.Seconds), append(loads, fmt.Sprintf("%5s", r.Load))
		}
		slices.Sort(took)
		slices.Sort(loads)
		share := float64(undecided) / float64(max(passed+undecided+failed, 1))
		fmt.Fprintf(&b, "| %d | %d | %d | %d, %.1f %% | %d | %.0f | %.0f | %s |\n", all[0].Seed, len(took), passed, undecided, 100*share, failed,
			took[len(took)/2], took[len(took)-1], strings.TrimSpace(loads[len(loads)/2]))
		all = all[n:]
	}
	return b.String()
}
