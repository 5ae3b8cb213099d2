package results

import (
	"bytes"
	"strings"
	"testing"

	"hammerlock/checker"
	"hammerlock/history"
)

// TestConformance: a failure belongs to the claim that its cause breaks, the shortest story tells of it, and what nobody tried
// or claimed does not hold.
func TestConformance(t *testing.T) {
	verdict := func(name string, s checker.Status, cause string, story ...string) checker.Verdict {
		return checker.Verdict{Checker: name, Status: s, Cause: cause, Summary: name, Story: story}
	}
	runs := []Run{
		{Topology: "single", Lock: "x", Scenario: "a", Command: "verify a", Verdicts: []checker.Verdict{
			verdict("exclusion", checker.Fail, "foreign-release", "one", "two"), verdict("liveness", checker.Pass, ""), verdict("lost-updates", checker.Pass, "")}},
		{Topology: "single", Lock: "x", Scenario: "b", Command: "verify b", Verdicts: []checker.Verdict{
			verdict("release", checker.Fail, "foreign-release", "one"), verdict("liveness", checker.Fail, "leak", "key"), verdict("fencing", checker.NotJudged, ""),
			verdict("lease-validity", checker.Inconclusive, "")}},
	}
	got := map[string]Claim{}
	all := Conformance(history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true}, runs)
	for _, c := range all {
		got[c.Claim] = c
	}
	for name, want := range map[string]checker.Status{
		"excludes": checker.Pass, "owned": checker.Fail, "cleans": checker.Fail, "serves": checker.Pass, "fences": checker.NotJudged,
		"expires": checker.Inconclusive, "reentrant": checker.Inconclusive, "renews": checker.NotJudged, "ordered": checker.NotJudged,
	} {
		if got[name].Status != want {
			t.Errorf("%s: got %v, want %v: %+v", name, got[name].Status, want, got[name])
		}
	}
	if o := got["owned"]; o.Command != "verify b" || len(o.Story) != 1 {
		t.Errorf("the shortest story is that of b: %+v", o)
	}
	var text bytes.Buffer
	if err := WriteConformance(&text, "x", all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"owned      DOES NOT HOLD", "fences     not claimed", "reentrant  INCONCLUSIVE   a holder can acquire again: no run has tried it", "repeat        verify b"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
