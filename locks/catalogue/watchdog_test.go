package catalogue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

// renewals gives the environment a lane. The returned function returns the records, when nobody writes any more.
func renewals(e *locks.Env) func() []history.Op {
	clock := history.NewOrderedClock(0)
	e.Renewals = history.NewLane(clock, 0, 0, 1024, make(chan struct{}, 1))
	return func() (ops []history.Op) {
		history.NewMerge(clock, []*history.Lane{e.Renewals}).Flush(func(op *history.Op) { ops = append(ops, *op) })
		return ops
	}
}

func TestRenewedLocksOutliveTheirLease(t *testing.T) {
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Renews {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Name != "rueidislock" { // rueidislock keeps a core and the server busy
				t.Parallel()
			}
			played(t, home(s), s.Name, func(home *stage, key string) { outlivesItsLease(t, home, s, key) })
		})
	}
}

func outlivesItsLease(t *testing.T, home *stage, s locks.Spec, key string) {
	home.watch(t, home.sites...)
	e := home.env()
	recorded := renewals(&e)
	b := open(t, s, home.env())
	a, err := s.Open(e)
	must(t, err)
	held := grant(t, a, key, home.renewed)
	outlive(2 * home.renewed)
	second := refusal(t, b, key)
	first := a.Release(t.Context(), held)
	must(t, a.Close())
	if home.unanswered(first) || home.slow(home.renewed/5) {
		return
	}
	if !refused(second) {
		t.Errorf("after two leases: %v, want a refusal", second)
	}
	must(t, first)
	grant(t, b, key, home.renewed)
	checkRenewals(t, recorded(), held, home.renewed)
}

func checkRenewals(t *testing.T, ops []history.Op, held locks.Lease, ttl time.Duration) {
	t.Helper()
	good := 0
	for _, op := range ops {
		if op.Kind != history.Extend || op.Token != history.Hash(held.Token) || op.Hold != 0 || op.TTL != ttl {
			t.Errorf("recorded %+v", op)
		}
		if op.Outcome == history.OK {
			good++
			// On a busy machine, time may pass between the recorded call and the time from which the lock counts.
			if op.Until != history.Forever && (op.Until <= op.Call || op.Until > op.Return+ttl) {
				t.Errorf("renewed for %v of %v", op.Until-op.Return, ttl)
			}
		}
	}
	if good == 0 {
		t.Error("it outlived its lease, and no renewal is recorded")
	}
}

func TestRenewedLocksTellThatTheyAreLost(t *testing.T) {
	t.Parallel()
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			played(t, newBench(t, homeName(s)), s.Name, func(home *stage, key string) { isTold(t, home, s, key) })
		})
	}
}

func isTold(t *testing.T, home *stage, s locks.Spec, key string) {
	home.watch(t, home.sites...)
	e := home.env()
	recorded := renewals(&e)
	a, err := s.Open(e)
	must(t, err)
	held := grant(t, a, key, home.renewed)
	for _, c := range home.sites {
		must(t, c.FlushAll(t.Context()).Err())
	}
	live.Wait(t, "that it is told that its keys are gone", func() bool { return told(held) })
	released := a.Release(t.Context(), held)
	must(t, a.Close())
	if home.unanswered(released) || home.slow(home.renewed/5) {
		return
	}
	if !errors.Is(released, locks.ErrLost) {
		t.Errorf("release: %v, want ErrLost", released)
	}
	ops := recorded()
	if len(ops) == 0 {
		if !isRueidislock(s) { // an invalidation tells the holder
			t.Error("no renewal is recorded")
		}
	} else if last := ops[len(ops)-1]; last.Outcome == history.OK || last.Outcome == history.Failed &&
		last.Reason != history.Lost {
		t.Errorf("the last renewal is recorded as %s %s", last.Outcome, last.Reason)
	}
}

// TestRenewedLocksTellThatNobodyAnswers pauses the servers. The holder must learn of the loss when the last
// acknowledged lease ends, and not wait for a reply.
func TestRenewedLocksTellThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			played(t, newBench(t, homeName(s)), s.Name, func(home *stage, key string) {
				held := grant(t, open(t, s, home.env()), key, home.renewed)
				home.watch(t) // this process only
				for _, n := range home.top.Nodes {
					must(t, n.Pause())
					defer func() { must(t, n.Resume()) }()
				}
				paused := time.Now()
				live.Wait(t, "that it is told", func() bool { return told(held) })
				// The last renewal may have been acknowledged just before the pause.
				if time.Now().After(paused.Add(2*home.renewed)) && !home.slow(home.renewed/4) {
					t.Errorf("told %v after the last answer of a lease of %v", -time.Until(paused), home.renewed)
				}
			})
		})
	}
}

// TestCloseIsHowAWorkerDies: nothing is renewed and nothing is released.
func TestCloseIsHowAWorkerDies(t *testing.T) {
	t.Parallel()
	home := homes(t)
	for _, s := range every {
		if !s.Claims.Renews || s.Broken != "" || isRueidislock(s) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			played(t, home(s), s.Name, func(home *stage, key string) {
				a, err := s.Open(home.env())
				must(t, err)
				b := open(t, s, home.env())
				_, call := grantCalled(t, a, key, home.renewed)
				must(t, a.Close())
				err = refusal(t, b, key)
				if home.late(locks.Until(call, home.renewed)) {
					return
				}
				if !refused(err) {
					t.Errorf("after its death: %v, want a refusal", err)
				}
				waitFor(t, b, key)
			})
		})
	}
}

// unrenewed is a lock whose leases can be acquired and re-entered, but not extended.
type unrenewed struct{ locks.Lock }

func (unrenewed) Acquire(_ context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return locks.Lease{Key: key, Token: "t", Until: time.Now().Add(ttl), Count: 1}, nil
}

func (unrenewed) Extend(_ context.Context, l locks.Lease, _ time.Duration) (locks.Lease, error) {
	return l, errors.New("no answer")
}

func (unrenewed) Release(context.Context, locks.Lease) error { return nil }

// TestAReentryProlongsWhatIsRenewed: no renewal gets a reply. The watchdog must give the hold up when the lease of
// the last re-entry ends, and not before.
func TestAReentryProlongsWhatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := renew(unrenewed{}, locks.Env{})
		held, err := l.Acquire(t.Context(), "k", time.Second)
		must(t, err)
		outlive(900 * time.Millisecond)
		_, err = l.Acquire(t.Context(), "k", time.Second)
		must(t, err)
		outlive(900 * time.Millisecond)
		if told(held) {
			t.Error("lost after 1.8 s, of a hold that was entered again after 0.9 s")
		}
		outlive(200 * time.Millisecond)
		if !told(held) {
			t.Error("not lost after 2 s")
		}
		must(t, l.Release(t.Context(), held))
	})
}
