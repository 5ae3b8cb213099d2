package results

import (
	"testing"

	"hammerlock/checker"
)

// TestSoakCountsRounds takes rounds in an order in which each rule of Standing decides once.
func TestSoakCountsRounds(t *testing.T) {
	var s Soak
	take := func(scenario string, status checker.Status) {
		j := Judgement{Scenario: scenario, Verdicts: []checker.Verdict{
			{Checker: "exclusion", Status: status, Exposed: 9},
			{Checker: checker.Activity.Name, Status: checker.Pass, Exposed: 5, HandOffs: 3}}}
		if got := s.Take(j); got != status {
			t.Errorf("%s: got %s, want %s", scenario, got, status)
		}
	}
	for _, x := range []checker.Status{checker.Inconclusive, checker.Pass, checker.Inconclusive} {
		take("undecided at first", x)
	}
	for _, x := range []checker.Status{checker.Pass, checker.Fail, checker.Pass, checker.Inconclusive} {
		take("failed once", x)
	}
	take("never decided", checker.Inconclusive)
	for i, want := range []checker.Status{checker.Pass, checker.Fail, checker.Inconclusive} {
		if got, _ := s.Standing[i].Status(); got != want {
			t.Errorf("%s: got %s, want %s", s.Standing[i].Scenario, got, want)
		}
	}
	if got, want := s.Text(),
		"8 rounds: 3 passed, 1 FAILED, 4 inconclusive; 40 holds, 24 contended hand-offs"; len(s.Standing) != 3 ||
		got != want {
		t.Errorf("got %d kinds, %q, want 3, %q", len(s.Standing), got, want)
	}
}
