package harness

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/internal/live"
)

// TestACounterThatCannotBeReadHasNoCount ends the counter's server during a run.
func TestACounterThatCannotBeReadHasNoCount(t *testing.T) {
	t.Parallel()
	live.Again(t, func(int) string { return unread(t) })
}

// unread is undecided if the run was over before the server was.
func unread(t *testing.T) (undecided string) {
	j := job(t, func(p *Plan) { p.Duration = 1500 * time.Millisecond })
	p, err := j.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	var once sync.Once
	var ended atomic.Bool
	j.Progress = func(e Event) {
		if e.Live.Done > 0 {
			once.Do(func() {
				_ = p.deployment.CounterClient().ShutdownNoSave(t.Context()) // the server closes the connection
				ended.Store(true)
			})
		}
	}
	r, err := p.Do(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !ended.Load() || r.Verdicts[0].Status == checker.Pass {
		return "the run was over before the server was"
	}
	if v := r.Views; v.Acknowledged == 0 || v.Final != 0 || v.Lost != 0 {
		t.Errorf("page views: %+v", v)
	}
	v := r.Verdicts[0]
	if v.Status != checker.Inconclusive || v.Violations != 0 ||
		!strings.HasSuffix(v.Summary, "; the counter cannot be read") ||
		!strings.Contains(v.Summary, "ended unexpectedly") {
		t.Errorf("verdict: %v %+v", v.Status, v)
	}
	return ""
}
