package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
	"hammerlock/internal/glossary"
)

// TestAdviceForWaiters: a lock that serves in order grants a free page to no waiter. Then the advice is about its
// queue. If a waiter slept in its call, the advice is that of the cause.
func TestAdviceForWaiters(t *testing.T) {
	for name, x := range map[string]struct {
		ordered, slept bool
		want           string
	}{
		"a queue":        {true, false, dropTheDead},
		"no queue":       {false, false, glossary.FindCause(history.Deadlock).Remedy},
		"a long pause":   {false, true, glossary.FindCause(history.Stuck).Remedy},
		"a queue sleeps": {true, true, dropTheDead},
	} {
		s := newBuilder()
		s.tick, s.h.Bounds.Gap = time.Second, time.Millisecond
		s.h.Claims = history.Claims{Excludes: true, Expires: true, Owned: true, Ordered: x.ordered}
		h := s.grant(1, 0, 1, 3)
		s.release(1, h, 2, 3, history.OK)
		if x.slept {
			s.refuse(2, 2, 19)
			s.grant(3, 19, 20, 3)
		} else {
			s.asking(2, 4, 20)
		}
		all := []Verdict{liveness.Check(s.prepared())}
		Advise(all)
		if v := &all[0]; v.Status != Fail || v.Remedy != x.want {
			t.Errorf("%s: got %v, %s: %q, want %q", name, v.Status, v.Summary, v.Remedy, x.want)
		}
	}
	if means := glossary.FindCause(history.FalseRelease).Means; strings.Contains(means, "another worker") {
		t.Errorf("no other worker need have had the lock: %s", means)
	}
}
