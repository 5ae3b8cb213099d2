package harness

import (
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
)

// TestACounterThatCannotBeReadHasNoCount ends the counter's server in the middle of a run.
func TestACounterThatCannotBeReadHasNoCount(t *testing.T) {
	t.Parallel()
	p, err := job(t, func(p *Plan) { p.Duration = 1500 * time.Millisecond }).Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		<-time.After(500 * time.Millisecond)
		_ = p.deployment.CounterClient().ShutdownNoSave(t.Context()) // the answer is the end of the connection
	}()
	r, err := p.Run(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Views; v.Acknowledged == 0 || v.Final != 0 || v.Lost != 0 {
		t.Errorf("page views: %+v", v)
	}
	v := r.Verdicts[0]
	if v.Status != checker.Inconclusive || v.Violations != 0 || !strings.HasSuffix(v.Summary, "; the counter cannot be read") ||
		!strings.Contains(v.Summary, "ended by itself") {
		t.Errorf("verdict: %v %+v", v.Status, v)
	}
}
