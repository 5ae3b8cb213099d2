package checker

import (
	"strings"
	"testing"
)

// TestSums: the page views that pauses and servers can have cost are excused, and no more. A doubt is no pass either.
func TestSums(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		Tally
		want  Status
		cause string
	}{
		"none lost":      {Tally{Acknowledged: 9, Final: 9}, Pass, ""},
		"nothing stored": {Tally{}, Inconclusive, ""},
		"lost":           {Tally{Acknowledged: 9, Final: 8}, Fail, "lost-update"},
		"as many as are excused": {Tally{Acknowledged: 9, Final: 7, Doubt: "a pause", Excused: 2},
			Inconclusive, ""},
		"one more than is excused": {Tally{Acknowledged: 9, Final: 6, Doubt: "a pause", Excused: 2},
			Fail, "lost-update"},
		"an agent that was lost": {Tally{Acknowledged: 9, Final: 8, Doubt: "an agent was lost"},
			Fail, "lost-update"},
		"... and none of the views": {Tally{Acknowledged: 9, Final: 9, Doubt: "an agent was lost"},
			Inconclusive, ""},
		"... whose views were counted": {Tally{Acknowledged: 9, Final: 12, Doubt: "an agent was lost", Missing: true},
			Inconclusive, ""},
		"more, and a server that failed": {Tally{Acknowledged: 9, Final: 12, Doubt: "a server", Excused: 9},
			Fail, "duplicate"},
		"more than were stored":         {Tally{Acknowledged: 9, Final: 12}, Fail, "duplicate"},
		"answers that may make up":      {Tally{Acknowledged: 9, Unknown: 2, Final: 10}, Inconclusive, ""},
		"lost for certain in any order": {Tally{Acknowledged: 9, Unknown: 2, Final: 8}, Fail, "lost-update"},
	} {
		v := c.Verdict()
		if v.Status != c.want || v.Cause != c.cause || (v.Violations > 0) != (c.cause == "lost-update") {
			t.Errorf("%s: got %v %q: %s", name, v.Status, v.Cause, v.Summary)
		}
		if c.Doubt != "" && c.cause != "duplicate" && !strings.Contains(v.Summary, c.Doubt) {
			t.Errorf("%s: %q does not say why it is in doubt", name, v.Summary)
		}
	}
}
