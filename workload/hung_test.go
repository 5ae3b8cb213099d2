package workload

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// sticking is a lock whose third release first releases the lock. Then it waits for a channel and, if heeds is set,
// for the end of its context.
type sticking struct {
	locks.Lock
	heeds    bool
	over     chan struct{}
	releases int
}

func (s *sticking) Release(ctx context.Context, lease locks.Lease) error {
	err := s.Lock.Release(ctx, lease)
	if s.releases++; s.releases != 3 {
		return err
	}
	heeded := ctx.Done()
	if !s.heeds {
		heeded = nil
	}
	select {
	case <-s.over:
		return nil
	case <-heeded:
		return ctx.Err()
	}
}

// TestACallThatDoesNotReturnEndsNoRun: the other workers go on. When they have ended, the open call is cancelled,
// and abandoned if it ignores that. If it returns later, it records nothing.
func TestACallThatDoesNotReturnEndsNoRun(t *testing.T) {
	for name, heeds := range map[string]bool{"one that heeds its context": true, "one that does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open, over := catalogued(t, "local"), make(chan struct{})
				plan := Shape{
					Workers: 2, Keys: 2, Hold: time.Millisecond, Retry: time.Millisecond, End: 100 * time.Millisecond,
				}
				due, ops, _ := runWith(t, plan, func(worker int) locks.Lock {
					if worker == 1 {
						return &sticking{Lock: open(worker), heeds: heeds, over: over}
					}
					return open(worker)
				}, t.Context(), func(c *Workers) { c.Patience = 2 * time.Second })
				if len(due.Hung) != 1 {
					t.Fatalf("got %+v", due.Hung)
				}
				h := due.Hung[0]
				if h.Worker != 1 || h.CalledOff < 2*time.Second || h.CalledOff > 3*time.Second ||
					(h.GivenUp == 0) != heeds {
					t.Errorf("got %+v", h)
				}
				if !heeds && (!strings.Contains(h.Text, "(*sticking).Release") || h.GivenUp < h.CalledOff+offFor) {
					t.Errorf("got %+v", h)
				}
				if due.Begun < 20 {
					t.Errorf("only %d visits were begun", due.Begun)
				}
				for _, op := range ops {
					if open := op.Return == history.Forever; open &&
						(heeds || op.Worker != 1 || op.Kind != history.Release) {
						t.Errorf("open: %+v", op)
					}
				}
				close(over)
				synctest.Wait()
			})
		})
	}
}

// TestWithoutPatienceNothingIsCalledOff: a call that returns late by itself does not count as hung.
func TestWithoutPatienceNothingIsCalledOff(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			open, over := catalogued(t, "local"), make(chan struct{})
			time.AfterFunc(10*time.Second, func() { close(over) })
			plan := Shape{
				Workers: 1, Keys: 1, Hold: time.Millisecond, Retry: time.Millisecond, End: 100 * time.Millisecond,
			}
			due, _, _ := runWith(t, plan, func(worker int) locks.Lock {
				return &sticking{Lock: open(worker), over: over}
			}, t.Context(),
				func(c *Workers) { c.Patience = patience })
			if len(due.Hung) > 0 || due.Begun != 3 {
				t.Errorf("patience %v: got %+v, %d visits", patience, due.Hung, due.Begun)
			}
		})
	}
}
