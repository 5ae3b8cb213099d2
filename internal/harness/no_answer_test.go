package harness

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/faults"
	"hammerlock/history"
)

// TestAServerThatDoesNotAnswerAFault: the run reports that, and is not broken.
func TestAServerThatDoesNotAnswerAFault(t *testing.T) {
	t.Parallel()
	j := job(t, func(p *Plan) { p.Verify, p.Warmup, p.Duration = true, 0, 3*time.Second })
	j.Combinations[0].Steps = []faults.Step{{From: 100 * time.Millisecond, Fault: faults.Fault{
		Name:   "unheard",
		Effect: func(faults.Scene) history.Effect { return history.Effect{Hits: []history.Party{history.Servers}} },
		Inject: func(context.Context, *faults.Target) (string, faults.Heal, error) {
			return "", nil, os.ErrDeadlineExceeded
		},
	}}}
	runs, err := j.Run(t.Context(), t.Context())
	if err != nil || len(runs) != 1 {
		t.Fatalf("got %d runs, error %v", len(runs), err)
	}
	if status, text := runs[0].Safety(); status != checker.Inconclusive || !strings.Contains(text, "unheard") {
		t.Errorf("%v: %s", status, text)
	}
}
