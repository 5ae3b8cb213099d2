package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestALateReleaseIsNotBlamedForWhatAServerForgot: a release that was called when its lease was over has ended nobody's
// hold that was extended after that, and one that was called in time was in time, whenever it was answered. What a
// server forgets later is its doing.
func TestALateReleaseIsNotBlamedForWhatAServerForgot(t *testing.T) {
	for _, tt := range []struct {
		called   time.Duration
		extended bool
		cause    string
	}{{400, true, "service-loss"}, {400, false, "foreign-release"}, {100, false, "service-loss"}} {
		s := newScript()
		s.Sites = 1
		s.release(s.acquire(1, 0, 1, 300), tt.called, 700)
		b := s.acquire(2, 650, 651, 300)
		if tt.extended {
			s.extend(b, 720, 721, 300)
		}
		s.fault(serverDies, 800, 801)
		s.release(s.acquire(1, 810, 811, 300), 900, 901)
		if v := Exclusion.Check(s.prepare(t)); v.Status != Fail || v.Cause != tt.cause {
			t.Errorf("called at %d, extended %t: got %s %q: %s, want %s", tt.called, tt.extended, v.Status, v.Cause, v.Summary, tt.cause)
		}
	}
}

// TestAStoryTellsWhoAFenceRefused: a service forgot a grant, and the counter lets its holder neither load nor store.
func TestAStoryTellsWhoAFenceRefused(t *testing.T) {
	for _, kind := range []history.Kind{history.Load, history.Store} {
		s := newScript()
		s.Sites, s.Fenced = 1, true
		first := s.acquire(1, 0, 1, 1000)
		s.fault(serverDies, 10, 11)
		s.acquire(2, 100, 101, 1000)
		refused := s.on(first, kind, 200, 201)
		refused.Outcome, refused.Reason = history.Failed, history.Fenced
		v := Exclusion.Check(s.prepare(t))
		if story := strings.Join(v.Story, "\n"); v.Cause != "service-loss" || !strings.Contains(story, "w01 was refused by the counter") {
			t.Errorf("%v: got %q\n%s", kind, v.Cause, story)
		}
	}
}
