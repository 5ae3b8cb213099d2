package results

import (
	"slices"
	"strings"

	"hammerlock/checker"
	"hammerlock/history"
)

// Extent says how much was tested. Its numbers are the largest of several runs; NotJudged lists the claims that no
// run has proved or violated.
type Extent struct {
	checker.Extent
	NotJudged []string `json:"claims_not_judged"`
}

// ExtentOf returns the extent of the judged runs, or nil if no history was judged.
func ExtentOf(all []Judgement) (t *Extent) {
	for i := range all {
		for _, v := range all[i].Verdicts {
			if v.Extent == nil {
				continue
			}
			if t == nil {
				t = &Extent{NotJudged: []string{}}
			}
			t.Add(v.Extent)
		}
	}
	for i := range history.AllClaims {
		c := &history.AllClaims[i]
		judged := func(j Judgement) bool { return j.decides(c) }
		if t != nil && slices.Contains(t.Claims, c.Name) && !slices.ContainsFunc(all, judged) {
			t.NotJudged = append(t.NotJudged, c.Name)
		}
	}
	return t
}

// decides reports whether a judgement proves or violates a claim.
func (j *Judgement) decides(c *history.Claim) bool {
	proved, _ := holds(c, j.Scenario, j.Verdicts)
	return proved || slices.ContainsFunc(j.Verdicts, func(v checker.Verdict) bool {
		return v.Status == checker.Fail && slices.Contains(c.Judges, v.Checker)
	})
}

// Text summarizes the extent in one line; empty if t is nil.
func (t *Extent) Text() string {
	if t == nil {
		return ""
	}
	text := t.Extent.Text()
	if len(t.NotJudged) > 0 {
		text += "; claims not judged: " + strings.Join(t.NotJudged, ", ")
	}
	return text
}
