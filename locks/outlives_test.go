package locks

import (
	"errors"
	"testing"
	"time"

	"hammerlock/history"
)

// TestCloseIsACrash closes right locks that hold something: it stays, unless the lock says that only the end of its
// process is a crash.
func TestCloseIsACrash(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		b := home(s)
		if s.Broken != "" || !s.Claims.Excludes || !s.Claims.Expires || !b.runs(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			e := b.env()
			if s.Claims.Renews {
				e.Renewals = history.NewLane(history.NewClock(0), 0, 0, 1<<10, nil)
			}
			first, err := s.Open(e)
			must(t, err)
			grant(t, first, "crash "+s.Name, 5*time.Second)
			must(t, first.Close())
			e = b.env()
			if s.Claims.Renews {
				e.Renewals = history.NewLane(history.NewClock(0), 0, 0, 1<<10, nil)
			}
			second := open(t, s, e)
			_, err = second.Acquire(t.Context(), "crash "+s.Name, 5*time.Second)
			if kept := errors.Is(err, ErrBusy) || errors.Is(err, ErrQuorum); kept == s.Outlives || !kept && err != nil {
				t.Errorf("Outlives is %v, and who asks after the crash is told: %v", s.Outlives, err)
			}
		})
	}
}
