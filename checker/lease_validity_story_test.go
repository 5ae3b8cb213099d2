package checker

import (
	"strings"
	"testing"

	"hammerlock/history"
)

// TestAFaultThatEndsNoLeaseIsNamed: a server that refuses writes ends no lease, and the story says so.
func TestAFaultThatEndsNoLeaseIsNamed(t *testing.T) {
	for _, broken := range []bool{false, true} {
		s := newScript()
		s.denied(s.acquire(1, 0, 1, 400), 100, 101)
		want := "there was no fault"
		if broken {
			s.fault(history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}, 50, 90)
			want = s.Faults[0].Name + " ends no lease"
		}
		v := leaseValidity.Check(s.prepare(t))
		if story := strings.Join(v.Story, "\n"); v.Cause != history.PrematureLoss || !strings.Contains(story, want) {
			t.Errorf("%s %q, want %q in:\n%s", v.Status, v.Cause, want, story)
		}
	}
}
