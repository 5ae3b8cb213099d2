package checker

import (
	"strings"
	"testing"
	"time"

	"hammerlock/history"
)

// TestAReleaseThatIsSentAgain: a release was in progress for so long that it may have been sent twice. The second
// time, it ended the hold of another worker. A release that was answered before that hold was granted ended nothing.
func TestAReleaseThatIsSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		until    time.Duration // return of the release
		unknown  bool          // its own acquire had no answer
		granted  bool          // a third worker was granted the lock, too
		failures string
	}{
		"a loss": {430, false, false, "lease-validity: foreign-release"},
		"two grants": {
			430, false, true, "exclusion: foreign-release lease-validity: foreign-release",
		},
		"a loss, its own was never granted": {430, true, false, "lease-validity: foreign-release"},
		"two grants, its own was never granted": {
			430, true, true, "exclusion: foreign-release lease-validity: foreign-release",
		},
		"a loss, and it was answered before":     {300, false, false, "lease-validity: premature-loss"},
		"two grants, and it was answered before": {300, false, true, "exclusion: double-grant"},
	} {
		s := newScript()
		a := s.acquire(1, 190, 191, 400)
		if tt.unknown {
			op := s.last()
			op.Outcome, op.Reason, op.Until = history.Unknown, history.Other, 0
		}
		s.release(a, 205, tt.until)
		b := s.acquire(2, 414, 421, 400)
		if tt.granted {
			s.release(s.acquire(3, 416, 423, 400), 435, 436)
		}
		s.denied(b, 425, 426)
		c := s.prepare(t)
		var got []string
		for _, k := range []Checker{Exclusion, leaseValidity} {
			if v := k.Check(c); v.Status == Fail {
				got = append(got, k.Name+": "+v.Cause)
				story := strings.Join(v.Story, "\n")
				told := strings.Contains(story, "under way until 0.430000 s") ||
					strings.Contains(story, "called at 0.205000 s and answered at 0.430000 s") ||
					strings.Contains(story, "granted it as well")
				if v.Cause == history.ForeignRelease && !told {
					t.Errorf("%s: %s tells %s", name, k.Name, story)
				}
			}
		}
		if strings.Join(got, " ") != tt.failures {
			t.Errorf("%s: %q, want %q", name, got, tt.failures)
		}
	}
}
