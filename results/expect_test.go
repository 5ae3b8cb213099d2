package results

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/history"
)

func judged(scenario string, status checker.Status, causes ...string) Judgement {
	v := checker.Verdict{Checker: "exclusion", Status: status, Causes: map[string]int64{}}
	for i, cause := range causes {
		v.Causes[cause] = int64(len(causes) - i)
		if i == 0 {
			v.Cause = cause
		}
	}
	return Judgement{
		Topology: "single", Lock: "x", Scenario: scenario, Verdicts: []checker.Verdict{v}, Saved: "runs/" + scenario,
		Command: "verify " + scenario,
	}
}

func TestExpectedAndFound(t *testing.T) {
	pass, open := judged("crash", checker.Pass), judged("cost", checker.Inconclusive)
	leak, both := judged("late", checker.Fail, history.Leak),
		judged("renewal", checker.Fail, history.Leak, history.Stuck)
	for name, c := range map[string]struct {
		causes []string
		passes bool
		all    []Judgement
		met    checker.Status
		found  string
		in     string
	}{
		"a right lock passes": {nil, false, []Judgement{pass}, checker.Pass, "pass", ""},
		"a right lock fails":  {nil, false, []Judgement{pass, leak}, checker.Fail, "leak", "late"},
		"a right lock is undecided": {nil, false, []Judgement{pass, open}, checker.Inconclusive,
			"inconclusive", ""},
		"a broken lock is caught": {[]string{history.Leak}, false, []Judgement{pass, leak}, checker.Pass,
			"leak", "late"},
		"with a cause that is only counted": {[]string{history.Stuck}, false, []Judgement{leak, both}, checker.Fail,
			"leak", "late"},
		"with one of them": {[]string{history.Phantom, history.Leak}, false, []Judgement{pass, both},
			checker.Pass, "leak", "renewal"},
		"with another cause": {[]string{history.Phantom}, false, []Judgement{leak, open}, checker.Fail,
			"leak", "late"},
		"a broken lock passes": {[]string{history.Leak}, false, []Judgement{pass}, checker.Fail, "pass",
			""},
		"a broken lock is undecided": {[]string{history.Leak}, false, []Judgement{pass, open},
			checker.Inconclusive, "inconclusive", ""},
		"nothing was judged of a right lock": {nil, false, nil, checker.Inconclusive, "nothing judged", ""},
		"what it shows at times, it shows": {[]string{history.Leak}, true, []Judgement{leak}, checker.Pass, "leak",
			"late"},
		"... or not": {[]string{history.Leak}, true, []Judgement{pass}, checker.Pass, "pass",
			""},
		"... or it fails with another cause": {[]string{history.Phantom}, true, []Judgement{leak}, checker.Fail,
			"leak", "late"},
		"... or is undecided": {[]string{history.Leak}, true, []Judgement{open}, checker.Inconclusive,
			"inconclusive", ""},
	} {
		x := Expected{Lock: "x", Topology: "single", Causes: c.causes, Passes: c.passes}
		done := x.Take(c.all, Weigh(c.all, nil, "", nil))
		if x.Met != c.met || x.Found != c.found || x.Scenario != c.in ||
			done != (len(c.causes) > 0 && c.met == checker.Pass && c.found != "pass") {
			t.Errorf("%s: got %s, %s in %q, done %v", name, x.Met, x.Found, x.Scenario, done)
		}
		if j := x.Judgement(); j.Verdicts[0].Status != c.met || c.in != "" && j.Saved != "runs/"+c.in {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestExpectedRowsAreKept(t *testing.T) {
	leak := []string{history.Leak}
	lease := Expected{Lock: "lease", Topology: "single", Met: checker.Pass, Found: "pass", Passed: 3,
		Took: 1500 * time.Millisecond}
	broken := Expected{Lock: "broken", Topology: "single", Causes: leak, Met: checker.Pass, Found: "leak",
		Scenario: "crash"}
	late := broken
	late.Met, late.Found = checker.Fail, "pass"
	wanted := []Expected{{Lock: "lease", Topology: "single"}, {Lock: "lease", Topology: "redlock"},
		{Lock: "broken", Causes: leak}}
	first := PutExpected("", []Expected{lease, broken}, wanted, "monday")
	for _, row := range []string{
		"| `lease` | single | - | pass | pass, 3 of 3 | - | 1.5 | as expected | monday |\n",
		"| `lease` | redlock | - | pass | not measured yet |",
		"| `broken` | single | - | leak | leak | crash | 0.0 | as expected | monday |\n", "\n2 of 3 measured.\n",
	} {
		if !strings.Contains(first, row) {
			t.Errorf("no %q in\n%s", row, first)
		}
	}
	if again := PutExpected(first, nil, wanted, "tuesday"); again != first {
		t.Errorf("nothing was measured, and the document is another one:\n%s", again)
	}
	worse := PutExpected("text\n"+first+"text\n", []Expected{broken, late}, wanted, "tuesday")
	row := "| leak | pass | crash | 0.0 | NOT AS EXPECTED | tuesday |\n"
	if !strings.Contains(worse, row) || !strings.Contains(worse, "| monday |") || strings.Count(worse, "text\n") != 2 {
		t.Errorf("of two seeds one was not as expected:\n%s", worse)
	}
	wanted[2].Causes = []string{history.Stuck}
	if other := PutExpected(worse, nil, wanted, ""); !strings.Contains(other,
		"| `broken` | - | - | stuck | not measured yet |") {
		t.Errorf("a row of another expectation was kept:\n%s", other)
	}
}
