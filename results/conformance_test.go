package results

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

func found(name string, s checker.Status, cause string, story ...string) checker.Verdict {
	return checker.Verdict{Checker: name, Status: s, Cause: cause, Summary: name, Story: story}
}

func passed(names ...string) (all []checker.Verdict) {
	for _, name := range names {
		all = append(all, found(name, checker.Pass, ""))
	}
	return all
}

// told returns the claims of these runs, by name and as a list.
func told(made history.Claims, runs ...Run) (map[string]Claim, []Claim) {
	got, all := map[string]Claim{}, Conformance(made, runs)
	for _, c := range all {
		got[c.Claim] = c
	}
	return got, all
}

// TestConformance: a failure violates the claim that names its cause, and the shortest story is kept. A claim does
// not hold if no run has tested it, or if the lock does not make it.
func TestConformance(t *testing.T) {
	runs := []Run{
		{Topology: "single", Lock: "x", Scenario: "a", Command: "verify a",
			Verdicts: append(passed("activity", "liveness", "lost-updates"),
				found("exclusion", checker.Fail, "foreign-release", "one", "two"))},
		{Topology: "single", Lock: "x", Scenario: "b", Command: "verify b",
			Verdicts: append(passed("activity", "exclusion", "lost-updates"),
				found("release", checker.Fail, "foreign-release", "one"),
				found("liveness", checker.Fail, "leak", "key"),
				found("fencing", checker.NotJudged, ""),
				found("lease-validity", checker.Inconclusive, ""))},
	}
	got, all := told(history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true, Reentrant: true}, runs...)
	for name, want := range map[string]checker.Status{
		"excludes": checker.Fail, "owned": checker.Fail, "cleans": checker.Fail, "serves": checker.Pass,
		"fences":  checker.NotJudged,
		"expires": checker.Inconclusive, "reentrant": checker.Inconclusive, "renews": checker.NotJudged,
		"ordered": checker.NotJudged,
	} {
		if got[name].Status != want {
			t.Errorf("%s: got %v, want %v: %+v", name, got[name].Status, want, got[name])
		}
	}
	if o := got["owned"]; o.Command != "verify b" || len(o.Story) != 1 {
		t.Errorf("the shortest story is that of b: %+v", o)
	}
	var text bytes.Buffer
	if err := WriteConformance(&text, "x", all, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"owned      DOES NOT HOLD", "fences     not claimed",
		"reentrant  INCONCLUSIVE   a holder can acquire again: no run has tried it", "repeat        verify b"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestNoClaimHoldsThatWasNotJudged: a run proves nothing if it was too short, if one judge is inconclusive, or if
// only the checker "linearizable" passes. One run in which all judges pass is enough.
func TestNoClaimHoldsThatWasNotJudged(t *testing.T) {
	all := []string{"exclusion", "lost-updates", "linearizable", "lease-validity", "release", "liveness", "fairness",
		"fencing", "reentrancy"}
	var made history.Claims
	for i := range history.AllClaims {
		if flag := history.AllClaims[i].Flag; flag != nil {
			*flag(&made) = true
		}
	}
	made.Once = false // with Once no waiter is served
	scant := Run{Scenario: "upgrade", Verdicts: append(passed(all...), found("activity", checker.Inconclusive, ""))}
	got, list := told(made, scant, scant)
	for _, c := range list {
		if claimed := c.Claim != "permits" && c.Claim != "once"; claimed != (c.Status == checker.Inconclusive) {
			t.Errorf("too little was tried, and of %s it is said: %v, %s", c.Claim, c.Status, c.Summary)
		}
	}
	if !strings.Contains(got["excludes"].Summary, "activity") {
		t.Errorf("it is not said why: %+v", got["excludes"])
	}
	whole := Run{Scenario: "upgrade", Verdicts: passed(append(all, "activity")...)}
	for name, want := range map[string]checker.Status{"excludes": checker.Pass, "upgrades": checker.Pass,
		"wakes": checker.Pass, "readers": checker.Pass,
		"writers": checker.Inconclusive, "permits": checker.NotJudged} {
		if got, _ := told(made, scant, whole); got[name].Status != want {
			t.Errorf("%s: got %v, %s, want %v", name, got[name].Status, got[name].Summary, want)
		}
	}
	blind := Run{Verdicts: append(passed("activity", "linearizable", "lost-updates"),
		found("exclusion", checker.Inconclusive, ""))}
	if got, _ := told(made, blind); got["excludes"].Status != checker.Inconclusive {
		t.Errorf("the second opinion alone: %+v", got["excludes"])
	}
}

// TestTheStoryIsTheCheckersOwn: the story of a violated claim is from the checker "linearizable" only if no other
// checker has one. A failure whose cause no claim names violates the claim of its checker.
func TestTheStoryIsTheCheckersOwn(t *testing.T) {
	porcupine := found("linearizable", checker.Fail, "not-linearizable", "no order")
	run := Run{Verdicts: []checker.Verdict{porcupine, found("lost-updates", checker.Fail, "exclusion"),
		found("exclusion", checker.Fail, "double-grant", "w1", "w2")}}
	if got, _ := told(history.Claims{Excludes: true}, run); len(got["excludes"].Story) != 2 {
		t.Errorf("got %+v, want the story of exclusion", got["excludes"])
	}
	if got, _ := told(history.Claims{Excludes: true},
		Run{Verdicts: []checker.Verdict{porcupine}}); got["excludes"].Status != checker.Fail ||
		len(got["excludes"].Story) != 1 {
		t.Errorf("got %+v, want the second opinion", got["excludes"])
	}
	foreign := Run{Verdicts: append(passed("activity"), found("exclusion", checker.Fail, "foreign-release", "w1"))}
	for claim, made := range map[string]history.Claims{"owned": {Excludes: true, Owned: true},
		"excludes": {Excludes: true}, "permits": {Excludes: true, Permits: 3}} {
		if got, _ := told(made, foreign); got[claim].Status != checker.Fail {
			t.Errorf("%+v: got %+v, want that %s does not hold", made, got[claim], claim)
		}
	}
}

// TestAPhantomIsNoSecondHolder: a phantom, a hold without a holder, keeps other workers out. It violates the claim
// "cleans", but not mutual exclusion.
func TestAPhantomIsNoSecondHolder(t *testing.T) {
	phantom := Run{Verdicts: append(passed("activity"), found("exclusion", checker.Fail, "phantom", "w1"))}
	whole := Run{Verdicts: passed("activity", "exclusion", "linearizable", "lost-updates")}
	got, _ := told(history.Claims{Excludes: true, Cleans: true}, phantom, whole)
	if got["excludes"].Status != checker.Pass || got["cleans"].Status != checker.Fail {
		t.Errorf("got %+v", got)
	}
}

// TestConformanceSaysHowSoonHoldersHear of their losses, whether or not the claim to renew leases holds.
func TestConformanceSaysHowSoonHoldersHear(t *testing.T) {
	ms := func(n int64) *int64 { n *= int64(time.Millisecond); return &n }
	run := func(told *checker.Told) Run {
		return Run{Verdicts: []checker.Verdict{{Checker: "activity", Status: checker.Pass},
			{Checker: "lease-validity", Status: checker.Pass, Told: told}}}
	}
	for _, c := range Conformance(history.Claims{Renews: true},
		[]Run{run(&checker.Told{Count: 3, Max: ms(40)}), run(nil),
			run(&checker.Told{Count: 2, Never: 1, Max: ms(90), Inside: *ms(700)})}) {
		want := "in 3 runs; 5 holds lost under a living holder: told after 90.0 ms at most, 1 never, which went on " +
			"for up to 700 ms"
		if got := strings.ReplaceAll(c.Summary, "\u00a0", " "); c.Claim == "renews" && got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestTheExtentNamesClaimsThatNoRunHasJudged: a claim that one run has judged is judged, even if another run has not.
func TestTheExtentNamesClaimsThatNoRunHasJudged(t *testing.T) {
	run := func(scenario string, all ...checker.Verdict) Judgement {
		all[0].Extent = &checker.Extent{
			Workers: 4, Keys: 1, Claims: []string{"excludes", "expires", "owned", "upgrades"},
		}
		return Judgement{Scenario: scenario, Verdicts: all}
	}
	all := []Judgement{run("a", append(passed("activity", "exclusion", "lost-updates", "linearizable"),
		found("lease-validity", checker.Inconclusive, ""))...),
		run("b", append(passed("activity"), found("lease-validity", checker.Fail, "overrun"))...)}
	if got := ExtentOf(all).NotJudged; !slices.Equal(got, []string{"upgrades", "owned"}) {
		t.Errorf("got %v", got)
	}
	if got := ExtentOf(all[:1]).Text(); !strings.HasSuffix(got, "claims not judged: upgrades, expires, owned") {
		t.Errorf("got %q", got)
	}
	if got := ExtentOf([]Judgement{{}}); got != nil || got.Text() != "" {
		t.Errorf("an extent of nothing: %+v", got)
	}
}
