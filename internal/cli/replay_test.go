package cli

import (
	"testing"

	"hammerlock/checker"
	"hammerlock/history"
	"hammerlock/results"
)

// TestAReplayNamesTheVerdict: the header of a replay has the violation that only the final judge has found.
func TestAReplayNamesTheVerdict(t *testing.T) {
	for status, want := range map[checker.Status]string{
		checker.Fail: "FAIL  page 0", checker.Pass: "n1 ended",
	} {
		run := &results.Run{Label: "n1 ended", Verdicts: []checker.Verdict{
			{Checker: "liveness", Status: status, Cause: "stuck", Summary: "page 0"}}}
		if got := replayed(&history.History{}, run).At(0).Head.Label; got != want {
			t.Errorf("%s: got %q, want %q", status, got, want)
		}
	}
}
