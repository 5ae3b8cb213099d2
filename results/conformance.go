package results

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/glossary"
	"hammerlock/internal/human"
)

// Claim is what a lock promises, and what was found of it in runs that strained it.
type Claim struct {
	Claim   string         `json:"claim"`
	Says    string         `json:"says"` // what it promises
	Status  checker.Status `json:"status"`
	Summary string         `json:"summary"`
	Run     string         `json:"run,omitempty"`    // that the summary is of
	Story   []string       `json:"story,omitempty"`  // of what does not hold
	Remedy  string         `json:"remedy,omitempty"` // what to do about it
	Command string         `json:"command,omitempty"`
}

// claim is one that can be made. A failure is on the claim that its cause breaks, else on the first one that its
// checker is of. It holds only if all of its judges passed in one run.
type claim struct {
	name, says string
	made       func(*history.Claims) bool
	judges     []string // the checkers that tell whether it holds; the first one must
	blames     []string // the checkers whose other failures break it
	in         string   // the scenario that alone tries it; empty = any run does
	tells      bool     // with it belongs how soon holders hear of a loss
}

var claims = []claim{
	{name: "excludes", says: "one holder at a time", made: func(c *history.Claims) bool { return c.Excludes && c.Permits == 0 },
		judges: exclusive, blames: exclusive},
	{name: "permits", says: "no more permits are held at once than there are", made: func(c *history.Claims) bool { return c.Permits > 0 },
		judges: exclusive, blames: exclusive},
	{name: "readers", says: "readers share it, and what they read does not change", made: func(c *history.Claims) bool { return c.Readers },
		judges: []string{"lost-updates", "exclusion"}},
	{name: "upgrades", says: "a reader can become the writer, and no other comes between", made: func(c *history.Claims) bool { return c.Upgrades },
		judges: exclusive, in: "upgrade"},
	{name: "writers", says: "a writer that waits gets it although readers keep coming", made: func(c *history.Claims) bool { return c.Writers },
		judges: []string{history.Liveness}, in: "steady-readers"},
	{name: "expires", says: "a hold ends when its lease is over, and not before", made: func(c *history.Claims) bool { return c.Expires },
		judges: leased, blames: leased},
	{name: "owned", says: "only the owner can release, and gets the correct answer", made: func(c *history.Claims) bool { return c.Owned },
		judges: []string{"release"}, blames: []string{"release"}},
	{name: "cleans", says: "nothing stays in the servers of what was released or refused", made: func(c *history.Claims) bool { return c.Cleans },
		judges: []string{history.Liveness}},
	{name: "fences", says: "every grant has a greater fencing token", made: func(c *history.Claims) bool { return c.Fences },
		judges: []string{"fencing"}, blames: []string{"fencing"}},
	{name: "ordered", says: "waiters are served in their order", made: func(c *history.Claims) bool { return c.Ordered },
		judges: []string{history.Fairness}, blames: []string{history.Fairness}},
	{name: "reentrant", says: "a holder can acquire again", made: func(c *history.Claims) bool { return c.Reentrant },
		judges: []string{"reentrancy"}, blames: []string{"reentrancy"}},
	{name: "renews", says: "a lease is renewed until it is released, or its holder hears of the loss", made: func(c *history.Claims) bool { return c.Renews },
		judges: leased, tells: true},
	{name: "wakes", says: "a release wakes who waits", made: func(c *history.Claims) bool { return c.Wakes },
		judges: []string{history.Liveness}},
	{name: "serves", says: "who waits is granted the lock when it is free", made: func(*history.Claims) bool { return true },
		judges: []string{history.Liveness}, blames: []string{history.Liveness}},
}

var (
	exclusive = []string{"exclusion", "lost-updates", secondOpinion}
	leased    = []string{"lease-validity"}
)

// enough is the checker without which no other one says that something holds; secondOpinion has the least to tell.
const enough, secondOpinion = "activity", "linearizable"

// broken is the claim, of those that were made, that a failure is on; nil if it is on none.
func broken(made *history.Claims, v *checker.Verdict) (by *claim) {
	breaks := strings.Split(glossary.FindCause(v.Cause).Breaks, ", ")
	for i := range claims {
		c := &claims[i]
		switch {
		case !c.made(made):
		case slices.Contains(breaks, c.name):
			return c
		case by == nil && slices.Contains(c.blames, v.Checker):
			by = c
		}
	}
	return by
}

// holds tells whether a run shows that the claim holds, else why it does not; empty if the run says nothing of it.
func (c *claim) holds(r *Run) (proved bool, why string) {
	if c.in != "" && r.Scenario != c.in {
		return false, ""
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		switch judge := slices.Contains(c.judges, v.Checker); {
		case judge && v.Status == checker.Inconclusive, v.Checker == enough && v.Status != checker.Pass:
			return false, sentence(v)
		case judge && v.Status == checker.Fail:
			return false, "what breaks another claim hides it: " + sentence(v)
		}
		proved = proved || v.Checker == c.judges[0] && v.Status == checker.Pass
	}
	return proved, ""
}

// Conformance is what the runs of one lock say of its claims, all that can be made. A claim holds if some run has
// judged it and none has failed it; a failure with the shortest story of an exact checker speaks for all.
func Conformance(made history.Claims, runs []Run) (all []Claim) {
	for i := range claims {
		c := &claims[i]
		f := Claim{Claim: c.name, Says: c.says, Status: checker.NotJudged, Summary: "the lock does not claim it"}
		if c.made(&made) {
			f.weigh(c, &made, runs)
		}
		all = append(all, f)
	}
	return all
}

func (f *Claim) weigh(c *claim, made *history.Claims, runs []Run) {
	held, told := 0, checker.Verdict{}
	f.Status, f.Summary = checker.Inconclusive, "no run has tried it"
	for i := range runs {
		for k := range runs[i].Verdicts {
			v := &runs[i].Verdicts[k]
			// Two holders at once break exclusion, whatever their cause breaks besides.
			both := v.Checker == exclusive[0] && slices.Contains(c.blames, v.Checker)
			if v.Status == checker.Fail && (both || broken(made, v) == c) && (f.Status != checker.Fail || plainer(v, &told)) {
				told = *v
				f.Status, f.Summary, f.Story, f.Remedy, f.Run, f.Command = v.Status, sentence(v), v.Story, v.Remedy, runs[i].Combination(), runs[i].Command
			}
		}
		switch proved, why := c.holds(&runs[i]); {
		case proved:
			held++
		case why != "" && f.Status == checker.Inconclusive && f.Run == "":
			f.Summary, f.Run, f.Command = why, runs[i].Combination(), runs[i].Command
		}
	}
	if f.Status != checker.Fail && held > 0 {
		*f = Claim{Claim: f.Claim, Says: f.Says, Status: checker.Pass, Summary: "in " + human.Quantity(int64(held), "run")}
	}
	if c.tells {
		f.Summary += heard(runs)
	}
}

// heard says how soon holders heard that they had lost the lock, in all runs; empty if none had lost it.
func heard(runs []Run) string {
	var all checker.Told
	longest := int64(0)
	for i := range runs {
		for _, v := range runs[i].Verdicts {
			if t := v.Told; t != nil {
				all.Count, all.Never, all.Unknown, all.Inside = all.Count+t.Count, all.Never+t.Never, all.Unknown+t.Unknown, max(all.Inside, t.Inside)
				if t.Max != nil {
					longest = max(longest, *t.Max)
				}
			}
		}
	}
	if all.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s lost under a living holder: told within %s", human.Quantity(all.Count, "hold"), human.Duration(time.Duration(longest)))
	if text += fmt.Sprintf(", %d never", all.Never); all.Never > 0 {
		text += ", which went on for up to " + human.Duration(time.Duration(all.Inside))
	}
	return text
}

// plainer tells whether a failure says more in fewer words than another. The second opinion knows of no times and
// holders.
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

// WriteConformance writes what holds, claim by claim, and the shortest story for each that does not.
func WriteConformance(w io.Writer, lock string, all []Claim) error {
	words := map[checker.Status]string{checker.Pass: "HOLDS", checker.Fail: "DOES NOT HOLD", checker.Inconclusive: "INCONCLUSIVE", checker.NotJudged: "not claimed"}
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
