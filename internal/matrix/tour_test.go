package matrix

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/workload"
)

func TestAChapterIsRunUntilItShows(t *testing.T) {
	failed := Record{Status: checker.Fail, Findings: []finding{{"exclusion", "double-grant", ""}}}
	passed, unsure := Record{Status: checker.Pass}, Record{Status: checker.Inconclusive}
	right, fatal := expectation{Want: mustPass}, expectation{Want: mayFail}
	wrong, other := expectation{Want: mustFail, Causes: []string{"double-grant"}}, expectation{Want: mustFail, Causes: []string{"leak"}}
	for name, c := range map[string]struct {
		record          Record
		want            expectation
		more, undecided bool
	}{
		"a right lock passes":           {passed, right, false, false},
		"a right lock fails":            {failed, right, false, false},
		"a right lock, too little":      {unsure, right, true, true},
		"a wrong lock is caught":        {failed, wrong, false, false},
		"a wrong lock, by another":      {failed, other, true, false},
		"a wrong lock passes":           {passed, wrong, true, false},
		"a wrong lock, too little":      {unsure, wrong, true, true},
		"what no lock survives, shown":  {failed, fatal, false, false},
		"what no lock survives, passed": {passed, fatal, true, false},
	} {
		x := compare(c.record, c.want)
		if more, undecided := unshown(&c.record, c.want), x.undecided(); more != c.more || undecided != c.undecided {
			t.Errorf("%s: run again %v, undecided %v; want %v, %v", name, more, undecided, c.more, c.undecided)
		}
	}
}

// TestAFenceIsExpectedToRefuse: a chapter with a fenced counter tells that somebody is refused and nothing is lost.
func TestAFenceIsExpectedToRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		views  results.Views
		status checker.Status
		red    bool
	}{
		"refused":      {results.Views{Fenced: 1}, checker.Fail, false},
		"nobody":       {results.Views{}, checker.Fail, true},
		"lost":         {results.Views{Fenced: 1, Lost: 1}, checker.Pass, true},
		"undetermined": {results.Views{}, checker.Inconclusive, false},
	} {
		x := Result{Record: Record{Status: c.status}}
		if x.guarded(c.views); x.Red != c.red {
			t.Errorf("%s: unexpected %v, want %v: %s", name, x.Red, c.red, x.Why)
		}
	}
}

// TestTheTourTellsWhatIsInconclusive: one worker contends with nobody, however long it works.
func TestTheTourTellsWhatIsInconclusive(t *testing.T) {
	all := Chapters
	t.Cleanup(func() { Chapters = all })
	Chapters = []chapter{
		{"Alone", "Nobody contends.", on("lease", "single", faults.None), conditions{Workers: 1, Duration: 100 * time.Millisecond}},
		{"No lock", "Eight do.", on("none", "single", faults.None), conditions{Duration: 300 * time.Millisecond}},
	}
	var out bytes.Buffer
	tour := Tour{Dir: t.TempDir(), Seed: 1, Out: &out, Command: func(p harness.Plan) string { return "for " + p.Duration.String() }}
	wrong, undecided, err := tour.Tell(t.Context(), t.Context())
	if wrong != 0 || undecided != 1 || err != nil {
		t.Errorf("%d wrong, %d undecided, %v", wrong, undecided, err)
	}
	alone, others, _ := strings.Cut(out.String(), "2. NO LOCK")
	for _, want := range []string{"run again, for 200ms.", "run again, for 400ms.", "run again, for 800ms.", "   for 800ms\n"} {
		if strings.Count(alone, want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if strings.Count(alone, "INCONCLUSIVE") != mostTries || strings.Contains(alone, "UNEXPECTED") || !strings.Contains(others, "FAIL  ") {
		t.Error("the verdicts are not those")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestTheLastLineIsToldWhereThereIsADatabase: the commands that know none have no chapter of it.
func TestTheLastLineIsToldWhereThereIsADatabase(t *testing.T) {
	if got := len((&Tour{}).Chapters()); got != len(Chapters) {
		t.Errorf("without a database: got %d chapters, want %d", got, len(Chapters))
	}
	tour := &Tour{Database: workload.CounterSpec{Name: "database-fenced", Fenced: true}}
	all := tour.Chapters()
	if len(all) != len(Chapters)+1 || len((&Tour{}).Chapters()) != len(Chapters) {
		t.Fatalf("with a database: got %d chapters, want %d", len(all), len(Chapters)+1)
	}
	last := all[len(all)-1].Cell
	if want := BuiltIn.expect(last); last.Counter != "database-fenced" || want.Want != mustFail {
		t.Errorf("got %s, which is expected to end with %s", last, want.Want)
	}
}
