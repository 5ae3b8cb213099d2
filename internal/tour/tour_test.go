package tour

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
	"hammerlock/internal/harness"
	"hammerlock/results"
	"hammerlock/workload"
)

func TestAChapterIsComparedWithWhatItTells(t *testing.T) {
	run := func(status checker.Status, cause string, views results.Views) *results.Run {
		return &results.Run{
			Views: views, Verdicts: []checker.Verdict{{Checker: "exclusion", Status: status, Cause: cause}},
		}
	}
	refused, late := results.Views{Fenced: 1}, results.Views{Fenced: 1, Lost: 1}
	cause := []string{history.DoubleGrant}
	for name, c := range map[string]struct {
		causes []string
		run    *results.Run
		fenced bool
		met    checker.Status
	}{
		"a right lock passes": {nil, run(checker.Pass, "", results.Views{}), false, checker.Pass},
		"a right lock fails":  {nil, run(checker.Fail, history.Leak, results.Views{}), false, checker.Fail},
		"a right lock, too little": {
			nil, run(checker.Inconclusive, "", results.Views{}), false, checker.Inconclusive,
		},
		"a wrong lock is caught": {cause, run(checker.Fail, history.DoubleGrant, results.Views{}),
			false, checker.Pass},
		"a wrong lock, by another": {cause, run(checker.Fail, history.Leak, results.Views{}), false, checker.Fail},
		"a wrong lock passes":      {cause, run(checker.Pass, "", results.Views{}), false, checker.Fail},
		"a wrong lock, too little": {
			cause, run(checker.Inconclusive, "", results.Views{}), false, checker.Inconclusive,
		},
		"a fence refuses":             {nil, run(checker.Pass, "", refused), true, checker.Pass},
		"a fence refuses nobody":      {nil, run(checker.Pass, "", results.Views{}), true, checker.Fail},
		"a fence lets one through":    {nil, run(checker.Pass, "", late), true, checker.Fail},
		"a fence behind a lost grant": {cause, run(checker.Fail, history.DoubleGrant, refused), true, checker.Pass},
	} {
		if got, why := met(c.causes, c.run, c.fenced); got != c.met || (why != "") != (got == checker.Fail) {
			t.Errorf("%s: got %s, %q, want %s", name, got, why, c.met)
		}
	}
}

// TestEveryChapterCanBeTold: each chapter's lock and topology exist, and a chapter whose lock fails names a cause.
func TestEveryChapterCanBeTold(t *testing.T) {
	passes := []string{"The lease, done right", "Redlock, two of five hung", "The fence"}
	for _, c := range append(slices.Clone(Chapters), lastLine) {
		lock, topology := c.find()
		if lock.Open == nil || topology.Name == "" || !lock.Fits(topology) {
			t.Errorf("%s: %s on %s", c.Title, c.Lock, c.Topology)
		}
		fenced := c.Title == "The fence" || c.Title == lastLine.Title
		if got := c.causes(fenced); (len(got) == 0) != slices.Contains(passes, c.Title) {
			t.Errorf("%s: must fail with %q", c.Title, got)
		}
	}
}

// TestTheTourTellsWhatIsInconclusive: a single worker never contends, so its chapter stays undecided.
func TestTheTourTellsWhatIsInconclusive(t *testing.T) {
	all := Chapters
	t.Cleanup(func() { Chapters = all })
	Chapters = []chapter{
		{"Alone", "Nobody contends.", "lease", "single", faults.None, func(p *harness.Plan) {
			p.Workload.Workers, p.Duration = 1, 100*time.Millisecond
		}},
		{"No lock", "Eight do.", "none", "single", faults.None, func(p *harness.Plan) {
			p.Duration = 300 * time.Millisecond
		}},
	}
	var out bytes.Buffer
	tour := Tour{Seed: 1, Out: &out, Command: func(p harness.Plan) string { return "for " + p.Duration.String() }}
	dir := t.TempDir()
	wrong, undecided, err := tour.Tell(func(p harness.Plan) (*results.Run, error) {
		p.Out = dir
		job, err := p.Check(t.Context(), nil)
		if err != nil {
			return nil, err
		}
		runs, err := job.Run(t.Context(), t.Context())
		if err != nil {
			return nil, err
		}
		return &runs[0], nil
	})
	if wrong != 0 || undecided != 1 || err != nil {
		t.Errorf("%d wrong, %d undecided, %v", wrong, undecided, err)
	}
	alone, others, _ := strings.Cut(out.String(), "2. NO LOCK")
	for _, want := range []string{"run again, for 200ms.", "run again, for 400ms.", "run again, for 800ms.",
		"   for 800ms\n"} {
		if strings.Count(alone, want) != 1 {
			t.Errorf("%q is not there once", want)
		}
	}
	if strings.Count(alone, "INCONCLUSIVE") != len(harness.Doubling) || strings.Contains(alone, "UNEXPECTED") ||
		!strings.Contains(others, "FAIL  ") {
		t.Error("the verdicts are not those")
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// TestTheLastLineIsToldWhereThereIsADatabase: without a database, the last chapter is left out.
func TestTheLastLineIsToldWhereThereIsADatabase(t *testing.T) {
	if got := len((&Tour{}).Chapters()); got != len(Chapters) {
		t.Errorf("without a database: got %d chapters, want %d", got, len(Chapters))
	}
	tour := &Tour{Database: workload.CounterSpec{Name: "database-fenced", Fenced: true}}
	all := tour.Chapters()
	if len(all) != len(Chapters)+1 || len((&Tour{}).Chapters()) != len(Chapters) {
		t.Fatalf("with a database: got %d chapters, want %d", len(all), len(Chapters)+1)
	}
	p := harness.Default()
	if all[len(all)-1].With(&p); p.Counter.Name != "database-fenced" {
		t.Errorf("the last chapter counts in %s", p.Counter.Name)
	}
}
