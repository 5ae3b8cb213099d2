package web

import (
	"net/http"
	"strings"
	"testing"

	"hammerlock/internal/live"
	"hammerlock/internal/measure"
)

// TestAnExplorationEndsWithItsVerdict: an exploration that found nothing has no report, so an open page must get the
// last snapshot, however soon the job ends after it.
func TestAnExplorationEndsWithItsVerdict(t *testing.T) {
	s, end := start(t)
	read := make(chan string)
	go func() {
		_, _, events := get(t, http.MethodGet, s.URL()+"events")
		read <- events
	}()
	live.Wait(t, "a reader", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.readers == 1
	})
	x := measure.Exploration{Schedules: 4261, Remaining: 22180, Speed: 560, Deviations: 2, Text: "nothing yet"}
	head := measure.Head{Topology: "memory", Lock: "lease", Number: 1, Of: 1}
	s.Publish(&measure.Snapshot{Head: head, Exploration: &x})
	over := x
	over.Verdict, over.Text, over.Remaining = "PASS", "no violation in all 4261 schedules", 0
	s.Publish(&measure.Snapshot{Head: head, Exploration: &over})
	end("")
	events := <-read
	for _, want := range []string{`"bare":true`, `"safety":["pass","✓","PASS","no violation in all 4261 schedules"]`,
		`["Schedules","4 261","none known to follow"]`, "event: end\ndata: {\"report\": false}"} {
		if !strings.Contains(strings.ReplaceAll(events, "\u00a0", " "), want) {
			t.Errorf("no %s in:\n%s", want, events)
		}
	}
	for verdict, want := range map[string]string{"": "EXPLORING", "FAIL": "VIOLATED", "INCONCLUSIVE": "INCONCLUSIVE"} {
		x.Verdict = verdict
		f := newFrame(&measure.Snapshot{Head: head, Exploration: &x}, nil)
		if f.Safety[2] != want || !strings.Contains(f.Tiles[0][2], "22") || (f.Safety[0] == "pass") {
			t.Errorf("%q: got %v and %v, want %s", verdict, f.Safety, f.Tiles, want)
		}
	}
}
