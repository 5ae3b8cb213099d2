package results

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
)

// card is one of a lock with these scenarios.
func card(t *testing.T, judged ...Judgement) (markdown, badge string) {
	t.Helper()
	c := &Card{Judged: judged, Command: "verify --lock x --seed 1", Whole: Weigh(judged, nil, "", nil),
		Runs: []Run{{Started: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Environment: Environment{Suite: "v0.9.1"}}}}
	var m, b strings.Builder
	if err := c.WriteMarkdown(&m); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteBadge(&b); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(b.String()), new(struct{})); err != nil {
		t.Errorf("the badge is no SVG: %v\n%s", err, &b)
	}
	return m.String(), b.String()
}

// TestCard: a card names the verdict in a word, the first scenarios, the suite, the day and the command; it is green
// for a pass alone.
func TestCard(t *testing.T) {
	pass := func(name string) Judgement { return judged(name, checker.Pass) }
	failed, open := judged("crash", checker.Fail, "leak"), judged("cost", checker.Inconclusive)
	for name, c := range map[string]struct {
		judged []Judgement
		want   []string
		word   string
	}{
		"pass": {[]Judgement{pass("contention"), pass("late-holder"), pass("crash"), pass("a"), pass("b")},
			[]string{"| x | single | **pass** | contention, late-holder, crash, 2 more: pass |", "v0.9.1, 2026-11-26: 5 scenarios passed", "    verify --lock x --seed 1\n"}, "pass 2026-11-26"},
		"fail": {[]Judgement{pass("contention"), failed, open},
			[]string{"| x | single | **FAIL** | crash (exclusion: leak): FAIL; cost: undecided; contention: pass |", "1 of 3 scenarios failed"}, "FAIL 2026-11-26"},
		"open": {[]Judgement{pass("contention"), open}, []string{"**undecided**", "1 of 2 scenarios undecided: cost"}, "undecided 2026-11-26"},
	} {
		t.Run(name, func(t *testing.T) {
			markdown, badge := card(t, c.judged...)
			for _, want := range c.want {
				if !strings.Contains(markdown, want) {
					t.Errorf("no %q in\n%s", want, markdown)
				}
			}
			if !strings.Contains(badge, ">"+c.word+"<") || strings.Contains(badge, "#2e7d32") != (name == "pass") {
				t.Errorf("the badge is not of %q\n%s", c.word, badge)
			}
		})
	}
}
