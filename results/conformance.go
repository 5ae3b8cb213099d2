package results

import (
	"fmt"
	"io"
	"slices"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/internal/human"
)

// Claim is what a lock promises, and what was found of it in runs that strained it.
type Claim struct {
	Claim   string         `json:"claim"`
	Says    string         `json:"says"` // what it promises
	Status  checker.Status `json:"status"`
	Summary string         `json:"summary"`
	Run     string         `json:"run,omitempty"`   // that the summary is of
	Story   []string       `json:"story,omitempty"` // of what does not hold
	Command string         `json:"command,omitempty"`
}

// claim is one that can be made, with the verdicts that are on it: those of some checkers but for the causes that are on
// another claim.
type claim struct {
	name, says string
	made       func(*history.Claims) bool
	checkers   []string
	causes     []string // of any checker
}

var claims = []claim{
	{"excludes", "one holder at a time", func(c *history.Claims) bool { return c.Excludes }, []string{"exclusion", "lost-updates", "linearizable"},
		[]string{"over-claim", "silent-reacquire"}},
	{"expires", "a hold ends by itself, and not before its lease is over", func(c *history.Claims) bool { return c.Expires }, []string{"lease-validity"},
		[]string{"deadlock", "premature-loss", "ttl-too-long"}},
	{"owned", "only the owner can release, and gets the correct answer", func(c *history.Claims) bool { return c.Owned }, []string{"release"},
		[]string{"foreign-release"}},
	{"cleans", "nothing stays in the servers of what was released or refused", func(c *history.Claims) bool { return c.Cleans }, nil,
		[]string{"leak", "leftover", "phantom"}},
	{"fences", "every grant has a greater fencing token", func(c *history.Claims) bool { return c.Fences }, []string{"fencing"}, nil},
	{"ordered", "waiters are served in their order", func(c *history.Claims) bool { return c.Ordered }, []string{"fairness"}, nil},
	{"reentrant", "a holder can acquire again", func(c *history.Claims) bool { return c.Reentrant }, []string{"reentrancy"}, nil},
	{"renews", "a lease is renewed until it is released, or its holder is told", func(c *history.Claims) bool { return c.Renews }, nil,
		[]string{"renewal-failure"}},
	{"serves", "who waits is granted the lock when it is free", func(*history.Claims) bool { return true }, []string{"liveness"}, nil},
}

// by tells whether a verdict is on the claim. A failure is on the claim that its cause belongs to, if it belongs to one.
func (c *claim) by(v *checker.Verdict) bool {
	if v.Status == checker.Fail {
		for i := range claims {
			if slices.Contains(claims[i].causes, v.Cause) {
				return &claims[i] == c
			}
		}
	}
	return slices.Contains(c.checkers, v.Checker) || c.checkers == nil && v.Status == checker.Pass && v.Checker == "liveness"
}

// Conformance is what the runs of one lock say of its claims, all that can be made. A claim holds if some run has tried it
// and none has failed it; a failure with the shortest story speaks for all.
func Conformance(made history.Claims, runs []Run) (all []Claim) {
	for i := range claims {
		c := &claims[i]
		f := Claim{Claim: c.name, Says: c.says, Status: checker.NotJudged, Summary: "the lock does not claim it"}
		if c.made(&made) {
			f.Status, f.Summary = checker.Inconclusive, "no run has tried it"
			f.weigh(c, runs)
		}
		all = append(all, f)
	}
	return all
}

func (f *Claim) weigh(c *claim, runs []Run) {
	passed := 0
	for i := range runs {
		for k := range runs[i].Verdicts {
			v := &runs[i].Verdicts[k]
			if !c.by(v) {
				continue
			}
			if v.Status == checker.Pass {
				passed++
			}
			worse := v.Status == checker.Fail && (f.Status != checker.Fail || len(v.Story) < len(f.Story))
			if worse || v.Status == checker.Inconclusive && f.Status == checker.Inconclusive && f.Run == "" {
				f.Status, f.Summary, f.Story, f.Run, f.Command = v.Status, sentence(v), v.Story, runs[i].Combination(), runs[i].Command
			}
		}
	}
	if f.Status != checker.Fail && passed > 0 {
		*f = Claim{Claim: f.Claim, Says: f.Says, Status: checker.Pass, Summary: "in " + human.Quantity(passed, "verdict")}
	}
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
			p.Fact("repeat", c.Command)
		}
	}
	return p.Err
}
