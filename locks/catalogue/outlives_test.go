package catalogue

import (
	"testing"

	"hammerlock/history"
)

// TestCloseIsACrash closes locks that are held, as if their workers had died. The hold must stay. Locks whose Spec
// has Outlives are the exception: their workers cannot die alone, so Close releases the lock.
func TestCloseIsACrash(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		b := home(s)
		if s.Broken != "" || !s.Claims.Excludes || !s.Claims.Expires || !b.runs(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			e, other := b.env(), b.env()
			if s.Claims.Renews {
				e.Renewals = history.NewLane(history.NewClock(0), 0, 0, 1<<10, nil)
				other.Renewals = history.NewLane(history.NewClock(0), 0, 0, 1<<10, nil)
			}
			first, err := s.Open(e)
			must(t, err)
			grant(t, first, "crash "+s.Name, long)
			must(t, first.Close())
			second := open(t, s, other)
			if s.Outlives {
				grant(t, second, "crash "+s.Name, long)
			} else if err := refusal(t, second, "crash "+s.Name); !refused(err) {
				t.Errorf("who asks after the crash is told: %v", err)
			}
		})
	}
}
