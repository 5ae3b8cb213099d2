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

// TestACauseIsSaidOnce, whether the summary has it at its beginning or its end.
func TestACauseIsSaidOnce(t *testing.T) {
	for summary, want := range map[string]string{
		"deadlock: page 0 is stuck": "liveness: deadlock: page 0 is stuck",
		"violated once: deadlock":   "liveness: deadlock: violated once",
		"a deadlock":                "liveness: deadlock: a deadlock",
	} {
		if got := sentence(&checker.Verdict{Checker: "liveness", Cause: "deadlock", Summary: summary}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestErrorsSpeakForARunThatIsUndecided: they explain why nothing else could be judged.
func TestErrorsSpeakForARunThatIsUndecided(t *testing.T) {
	j := Judgement{Verdicts: []checker.Verdict{{Checker: "activity", Summary: "0 hand-offs"},
		{Checker: "calls", Summary: "no such argument", Exposed: 9, Misses: map[string]int64{history.EndedInErrors: 9}},
		{Checker: "liveness", Summary: "idle"}}}
	if status, text := j.Status(); status != checker.Inconclusive || text != "no such argument" {
		t.Errorf("got %v, %q", status, text)
	}
}

// TestScenariosAreATable: each row says on which numbers its verdict is based. Each cause has one paragraph, with
// its shortest story and advice. The verdict on all rows is last.
func TestScenariosAreATable(t *testing.T) {
	passed := Judgement{Topology: "single", Lock: "lease", Scenario: "contention",
		Faults: []string{"stall-worker@granted", "stall-worker:300ms@1s"}, Took: 2600 * time.Millisecond,
		Verdicts: []checker.Verdict{{Checker: "activity", Status: checker.Pass, Exposed: 1010, HandOffs: 99},
			{Checker: "exclusion", Status: checker.Pass}}}
	failed := Judgement{Topology: "single", Lock: "lease", Scenario: "crash", Stretched: 4, Command: "again",
		Verdicts: []checker.Verdict{
			{Checker: "exclusion", Status: checker.Fail, Cause: "overrun", Summary: "two held it",
				Story: []string{"long", "story"}, Remedy: "Stop in time."},
			{Checker: "release", Status: checker.Fail, Cause: "false-release", Summary: "wrong"},
		}}
	shorter := failed
	shorter.Scenario, shorter.Stretched = "late", 0
	shorter.Verdicts = []checker.Verdict{{Checker: "exclusion", Status: checker.Fail, Cause: "overrun",
		Summary: "two held it", Story: []string{"short"}, Remedy: "Stop in time."}}
	f := Findings{Judged: []Judgement{passed, failed, shorter}, Took: 90 * time.Second, Report: "report.html",
		Replay: "bench replay x", Repeat: "verify"}
	for _, name := range []string{"renewal", "readers"} {
		f.NotRun = append(f.NotRun, NotRun{Topology: "single", Lock: "lease", Scenario: name,
			Why: "it does not claim it"})
	}
	for _, name := range []string{"wear", "clocks"} {
		n := NotRun{Topology: "single", Lock: "lease", Scenario: name, Why: "nothing was granted", Ended: true}
		f.NotRun = append(f.NotRun, n)
	}
	f.NotRun = append(f.NotRun, NotRun{Topology: "single", Lock: "lease", Scenario: "cost", Why: "no time",
		Unasked: true})
	f.Whole = Weigh(f.Judged, f.NotRun, "", nil)
	f.Judged[0].Seen = []Fact{{Label: "seen", Text: "one thing"}}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := `lease on single
contention PASS         1 010 holds, 99 hand-offs, 2 stall-worker, 0 overlaps, 2.6 s
crash x4   FAIL         exclusion: overrun
late       FAIL         exclusion: overrun
           NOT RUN      renewal, readers
           NOT RUN      nothing was granted: wear, clocks
cost       NOT RUN      no time

FAIL          exclusion: overrun (late, crash)
              A holder stored when it had the lock no more: its lease was over, or it had released.
              The lock is right; its user must heed the deadline or use a fence.
              short
what to do    Stop in time.
repeat        again

VERDICT       FAIL  2 of 4 scenarios failed; 90 s in all
report        report.html
replay        bench replay x

single lease contention
seen          one thing
repeat        verify
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

// TestAFailureHasTheEvidenceOfItsCause: of two verdicts with one cause, the first has no evidence.
func TestAFailureHasTheEvidenceOfItsCause(t *testing.T) {
	j := Judgement{Topology: "http", Lock: "shop", Verdicts: []checker.Verdict{
		{Checker: "lost-updates", Status: checker.Fail, Cause: history.LostUpdate, Story: []string{"1 of 2 lost"}},
		{Checker: "duplicates", Status: checker.Fail, Cause: history.LostUpdate, Evidence: make([]history.Op, 1),
			Story: []string{"w00 was told that it was number 1"}},
	}}
	var out strings.Builder
	f := Findings{Judged: []Judgement{j, {Topology: "wire", Lock: "lock:*"}}}
	if err := f.Write(&out); err != nil || !strings.Contains(out.String(), "w00 was told that it was number 1") {
		t.Errorf("got %v:\n%s", err, &out)
	}
}

// TestTheWholeVerdict: 10 % inconclusive scenarios are tolerated if every class was judged and nothing is missing.
func TestTheWholeVerdict(t *testing.T) {
	classes := []string{"a", "b"}
	run := func(class string, status checker.Status) Judgement {
		return Judgement{Topology: "single", Lock: "lease", Scenario: "s-" + class, Class: class,
			Verdicts: []checker.Verdict{
				{Checker: "activity", Status: checker.Pass}, {Checker: "exclusion", Status: checker.Pass},
				{Checker: "lost-updates", Status: checker.Pass},
				{Checker: "liveness", Status: status, Summary: "why"}}}
	}
	open, pass := run("", checker.Inconclusive), []Judgement{run("a", checker.Pass), run("b", checker.Inconclusive)}
	for range 8 {
		pass = append(pass, run("", checker.Pass))
	}
	with := func(more ...Judgement) []Judgement { return append(slices.Clip(pass), more...) }
	torn, idle, plain := run("", checker.Pass), run("b", checker.Inconclusive), run("", checker.Pass)
	torn.Partial, plain.Scenario = "killed", ""
	idle.Verdicts[0].Status = checker.Inconclusive
	erred := run("b", checker.Inconclusive)
	erred.Verdicts = append(erred.Verdicts, checker.Verdict{Checker: "calls", Exposed: 9,
		Misses: map[string]int64{history.EndedInErrors: 5}})
	for name, c := range map[string]struct {
		all     []Judgement
		not     []NotRun
		cut     string
		classes []string
		want    checker.Status
		text    string
	}{
		"one in ten": {with(), nil, "", classes, checker.Pass, "1 of 10 scenarios undecided: s-b"},
		"strict":     {with(), nil, "", nil, checker.Inconclusive, "1 of 10 scenarios undecided: s-b"},
		"two in eleven": {with(open), nil, "", classes, checker.Inconclusive,
			"2 of 11 scenarios undecided: s-b, s-"},
		"no time for another": {with(), []NotRun{{Scenario: "cost", Unasked: true}}, "", classes,
			checker.Inconclusive, "2 of 11 scenarios undecided: s-b, cost"},
		"another is not meant": {with(), []NotRun{{Scenario: "cost"}}, "", classes, checker.Pass,
			"1 of 10 scenarios undecided: s-b"},
		"a class not judged": {append(with()[2:], run("a", checker.Pass), idle), nil, "", classes,
			checker.Inconclusive, "1 of 10 scenarios undecided: s-b"},
		"a partial history": {with(torn), nil, "", classes, checker.Inconclusive,
			"1 of 11 scenarios undecided: s-b"},
		"most were errors": {append(with()[2:], run("a", checker.Pass), run("b", checker.Pass), erred), nil, "",
			classes,
			checker.Inconclusive, "1 of 11 scenarios undecided: s-b"},
		"cut":          {with()[2:], nil, "interrupted", classes, checker.Inconclusive, "cut short: interrupted"},
		"one failed":   {with(run("", checker.Fail)), nil, "", classes, checker.Fail, "1 of 11 scenarios failed"},
		"a run beside": {with(plain), nil, "", classes, checker.Pass, "1 of 11 runs undecided: s-b"},
		"all passed":   {with()[2:], nil, "", nil, checker.Pass, "8 scenarios passed"},
	} {
		if got := Weigh(c.all, c.not, c.cut, c.classes); got.Status != c.want || got.Text != c.text {
			t.Errorf("%s: got %v, %q", name, got.Status, got.Text)
		}
	}
}
