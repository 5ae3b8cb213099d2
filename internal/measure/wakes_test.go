package measure

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/results"
)

// TestHandoffsAreSplitByWhatWokeTheWaiter: a lock is handed on twice. The first waiter is notified of the release,
// and the second one polls.
func TestHandoffsAreSplitByWhatWokeTheWaiter(t *testing.T) {
	s := &script{}
	s.visit(0, 10*ms, 11*ms, 20*ms)
	s.visit(1, 12*ms, 21*ms, 30*ms)
	s.visit(0, 25*ms, 37*ms, 40*ms)
	for i, wake := range map[time.Duration]history.Wake{11 * ms: history.AtOnce, 21 * ms: history.Signal,
		37 * ms: history.Poll} {
		for k := range s.ops {
			if op := &s.ops[k]; op.Kind == history.Acquire && op.Return == i {
				op.Woken = wake
			}
		}
	}
	m := s.meter(Options{Workers: 2, Keys: 1, To: time.Second, Excludes: true})
	var r results.Run
	m.Summarize(&r, results.Usage{})
	want := []struct {
		by            string
		tries, grants int64
		handoffs      int64
		mean          time.Duration
	}{{"at-once", 4, 1, 0, 0}, {"poll", 1, 1, 1, 7 * ms}, {"signal", 1, 1, 1, ms}}
	if len(r.Waiting.Woken) != len(want) {
		t.Fatalf("got %+v, want %d ways", r.Waiting.Woken, len(want))
	}
	for i, w := range want {
		got := r.Waiting.Woken[i]
		if got.By != w.by || got.Tries != w.tries || got.Grants != w.grants || got.Handoff.Count != w.handoffs ||
			got.Handoff.Mean != int64(w.mean) {
			t.Errorf("got %+v, want %+v", got, w)
		}
	}
	var out bytes.Buffer
	if err := results.WriteText(&out, []results.Run{r}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hand-off, woken by poll", "hand-off, woken by signal",
		"at-once 33.3 % of the grants (4.00 tries each)"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the report does not say %q:\n%s", text, out.String())
		}
	}
}
