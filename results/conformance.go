package results

import (
	"fmt"
	"io"
	"slices"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
)

// Claim is a claim of a lock, and the result of the runs that tested it.
type Claim struct {
	Claim   string         `json:"claim"`
	Says    string         `json:"says"` // what the claim promises
	Status  checker.Status `json:"status"`
	Summary string         `json:"summary"`
	Run     string         `json:"run,omitempty"`    // the run that Summary describes
	Story   []string       `json:"story,omitempty"`  // evidence, if the claim does not hold
	Remedy  string         `json:"remedy,omitempty"` // advice, if the claim does not hold
	Command string         `json:"command,omitempty"`
}

// If the checker "enough" does not pass, passes of other checkers prove nothing. Failures of the checker
// "secondOpinion" have the poorest explanations.
const enough, exclusion, secondOpinion = "activity", "exclusion", "linearizable"

// broken returns the claim that a failure violates, or nil. A claim that names the failure's cause comes first.
// Otherwise it is the first claim that names the checker as its judge and covers all other causes (Rest).
func broken(made *history.Claims, v *checker.Verdict) (by *history.Claim) {
	for i := range history.AllClaims {
		c := &history.AllClaims[i]
		switch {
		case !c.Of(made):
		case slices.Contains(c.Causes, v.Cause):
			return c
		case by == nil && c.Rest && slices.Contains(c.Judges, v.Checker):
			by = c
		}
	}
	return by
}

// holds reports whether a run proves a claim. If not, why is the reason; an empty reason means that the run says
// nothing about the claim.
func holds(c *history.Claim, scenario string, verdicts []checker.Verdict) (proved bool, why string) {
	if c.Scenario != "" && scenario != c.Scenario {
		return false, ""
	}
	for i := range verdicts {
		v := &verdicts[i]
		switch judge := slices.Contains(c.Judges, v.Checker); {
		case judge && v.Status == checker.Inconclusive, v.Checker == enough && v.Status != checker.Pass:
			return false, sentence(v)
		case judge && v.Status == checker.Fail:
			return false, "what breaks another claim hides it: " + sentence(v)
		}
		proved = proved || v.Checker == c.Judges[0] && v.Status == checker.Pass
	}
	return proved, ""
}

// Conformance returns what the runs of a lock show about each claim. A claim holds if at least one run proves it and
// no run violates it. If several runs violate a claim, the result has the best explanation, see plainer.
func Conformance(made history.Claims, runs []Run) (all []Claim) {
	for i := range history.AllClaims {
		c := &history.AllClaims[i]
		if len(c.Judges) == 0 {
			continue
		}
		f := Claim{Claim: c.Name, Says: c.Says, Status: checker.NotJudged, Summary: "the lock does not claim it"}
		if c.Of(&made) {
			f.weigh(c, &made, runs)
		}
		all = append(all, f)
	}
	return all
}

func (f *Claim) weigh(c *history.Claim, made *history.Claims, runs []Run) {
	held, told := 0, checker.Verdict{}
	f.Status, f.Summary = checker.Inconclusive, "no run has tried it"
	for i := range runs {
		for k := range runs[i].Verdicts {
			v := &runs[i].Verdicts[k]
			// Two simultaneous holders always violate mutual exclusion, even if their cause also violates another
			// claim.
			both := v.Checker == exclusion && c.Rest && slices.Contains(c.Judges, v.Checker) &&
				!checker.KeepsOut(v.Cause)
			if v.Status == checker.Fail && (both || broken(made, v) == c) &&
				(f.Status != checker.Fail || plainer(v, &told)) {
				told = *v
				f.Status, f.Summary, f.Story, f.Remedy, f.Run, f.Command = v.Status, sentence(v), v.Story, v.Remedy,
					runs[i].Combination(), runs[i].Command
			}
		}
		switch proved, why := holds(c, runs[i].Scenario, runs[i].Verdicts); {
		case proved:
			held++
		case why != "" && f.Status == checker.Inconclusive && f.Run == "":
			f.Summary, f.Run, f.Command = why, runs[i].Combination(), runs[i].Command
		}
	}
	if f.Status != checker.Fail && held > 0 {
		*f = Claim{Claim: f.Claim, Says: f.Says, Status: checker.Pass, Summary: "in " +
			human.Quantity(int64(held), "run")}
	}
	if c.Told {
		f.Summary += heard(runs)
	}
}

// heard returns a text about how soon holders learned that they had lost the lock. It is empty if no holder learned
// it.
func heard(runs []Run) string {
	var all checker.Told
	for i := range runs {
		for _, v := range runs[i].Verdicts {
			if v.Told != nil {
				all.Add(v.Told)
			}
		}
	}
	if all.Count == 0 {
		return ""
	}
	return "; " + all.Text()
}

// plainer reports whether v is explained better than other. A failure of the checker "linearizable" or without a
// story is explained worst, because it names neither times nor holders. Otherwise the shorter story is better.
func plainer(v, other *checker.Verdict) bool {
	rank := func(v *checker.Verdict) (bool, int) {
		return v.Checker == secondOpinion || len(v.Story) == 0, len(v.Story)
	}
	poor, lines := rank(v)
	others, theirs := rank(other)
	if poor != others {
		return others
	}
	return lines < theirs
}

// WriteConformance writes one line for each claim and one about the extent of the tests. The story of each violated
// claim follows.
func WriteConformance(w io.Writer, lock string, all []Claim, extent *Extent) error {
	words := map[checker.Status]string{checker.Pass: "HOLDS", checker.Fail: "DOES NOT HOLD",
		checker.Inconclusive: "INCONCLUSIVE", checker.NotJudged: "not claimed"}
	p := &human.Printer{W: w}
	p.Line("%s", lock)
	for i := range all {
		c := &all[i]
		text := c.Says
		if c.Status != checker.NotJudged {
			text += ": " + c.Summary
		}
		p.Wrapped(fmt.Sprintf("  %-10s %-14s ", c.Claim, words[c.Status]), 28, text)
	}
	p.Maybe("tried", extent.Text())
	for i := range all {
		if c := &all[i]; c.Status == checker.Fail {
			p.Line("\n%s (%s)", c.Claim, c.Run)
			for _, sentence := range c.Story {
				p.Fact("", sentence)
			}
			p.Maybe("what to do", c.Remedy)
			p.Fact("repeat", c.Command)
		}
	}
	return p.Err
}
