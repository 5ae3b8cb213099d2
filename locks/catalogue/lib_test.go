package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-redsync/redsync/v4"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func TestRedsyncTellsWhatIsCertain(t *testing.T) {
	t.Parallel()
	played(t, nil, "k", func(home *stage, key string) {
		home.bench = newBench(t, "redlock") // the test kills its servers
		a, b := home.pair(t, libRedsync)
		for down := range 5 {
			held, err := a.Acquire(t.Context(), key, long)
			if home.unanswered(err) {
				return
			}
			if granted := err == nil; granted != (down < 3) {
				t.Errorf("%d of 5 sites down: %v", down, err)
			}
			if err == nil {
				if busy := refusal(t, b, key); !refused(busy) {
					t.Errorf("%d of 5 sites down, and taken: %v", down, busy)
				}
				if home.release(t, a, held); home.undecided != "" {
					return
				}
			}
			must(t, home.top.Nodes[down].Kill())
		}
	})
}

func TestRedsyncErrors(t *testing.T) {
	t.Parallel()
	unreachable := &redsync.RedisError{Err: fmt.Errorf("%w: dial", topologies.ErrUnreachable)}
	silent := &redsync.RedisError{Err: io.EOF}
	taken := &redsync.ErrNodeTaken{}
	cases := map[string]struct {
		err     error
		sites   int
		outcome history.Outcome // outcome of a try for the lock
		reason  history.Reason
	}{
		"a majority has it": {&redsync.ErrTaken{Nodes: []int{0, 1, 2}}, 5, history.Failed, history.Busy},
		"two taken, one down": {errors.Join(errors.Join(taken, unreachable), taken), 5, history.Failed,
			history.Quorum},
		"three down": {errors.Join(unreachable, unreachable, unreachable, silent), 5,
			history.Failed, history.Unreachable},
		"two taken":             {errors.Join(taken, taken), 5, history.Unknown, history.Other},
		"two taken, one silent": {errors.Join(taken, taken, silent), 5, history.Unknown, history.Dropped},
		"all silent": {errors.Join(silent, silent, silent, silent, silent), 5, history.Unknown,
			history.Dropped},
		"all expired": {
			errors.Join(redsync.ErrLockAlreadyExpired, redsync.ErrLockAlreadyExpired, redsync.ErrLockAlreadyExpired), 5,
			history.Failed, history.Busy,
		},
		"granted, but too late":  {redsync.ErrFailed, 5, history.Unknown, history.Other},
		"extended, but too late": {redsync.ErrExtendFailed, 5, history.Unknown, history.Other},
		"one expired, the others silent": {errors.Join(redsync.ErrLockAlreadyExpired, silent, silent), 5,
			history.Unknown, history.Dropped},
		"the only one is down": {errors.Join(unreachable), 1, history.Failed, history.Unreachable},
		"the only one has it":  {&redsync.ErrTaken{Nodes: []int{0}}, 1, history.Failed, history.Busy},
	}
	for name, c := range cases {
		l := &redsyncLock{sites: c.sites}
		t.Run(name, func(t *testing.T) {
			if outcome, reason := locks.Classify(l.classify(c.err, locks.ErrBusy)); outcome != c.outcome ||
				reason != c.reason {
				t.Errorf("got %s %s, want %s %s", outcome, reason, c.outcome, c.reason)
			}
			want := c.outcome
			if errors.Is(c.err, topologies.ErrUnreachable) {
				want = history.Unknown
			}
			if outcome, _ := locks.Classify(l.classify(c.err, locks.ErrLost)); outcome != want {
				t.Errorf("of a holder: got %s, want %s", outcome, want)
			}
		})
	}
}

func TestRedsyncWaitsAsItsOwnLockDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := open(t, libRedsync, locks.Env{Rand: newRand()})
		start := time.Now()
		wake, err := a.(locks.Waiter).Wait(t.Context(), "k")
		if err != nil || wake != history.Poll || time.Now().Before(start.Add(50*time.Millisecond)) {
			t.Errorf("by %s after %v: %v", wake, -time.Until(start), err)
		}
	})
}

// TestLibrariesLeaveNothingWhenAVisitIsCalledOff cancels a visit and checks that no key is left.
func TestLibrariesLeaveNothingWhenAVisitIsCalledOff(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range []locks.Spec{libRedsync, libRedislock, rueidislockSpec()} {
		t.Run(s.Name, func(t *testing.T) {
			a, b := home(s).pair(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if held, err := a.Acquire(ctx, s.Name, long); err == nil {
				must(t, a.Release(t.Context(), held))
			}
			grant(t, b, s.Name, long)
		})
	}
}
