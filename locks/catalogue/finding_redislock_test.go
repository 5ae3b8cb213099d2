package catalogue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"

	"hammerlock/internal/live"
	"hammerlock/topologies"
)

func TestFindingRedislockTokenPrefixTakesTheLock(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	locker := redislock.New(p.clients[0])
	obtain := func(token string) (*redislock.Lock, error) {
		return locker.Obtain(t.Context(), "k", long, &redislock.Options{Token: token})
	}
	held, err := obtain("worker-12")
	must(t, err)
	if _, err := obtain("worker-2"); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("worker-2 was told %v", err)
	}
	other, err := obtain("worker-1")
	if err != nil {
		t.Fatalf("worker-1 was refused what worker-12 holds: %v", err)
	}
	if err := held.Refresh(t.Context(), long, nil); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("worker-12 still holds it: %v", err)
	}
	must(t, other.Release(t.Context()))
}

func TestFindingRedislockRefreshForNothingDeletes(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	locker := redislock.New(p.clients[0])
	for _, ttl := range []time.Duration{500 * time.Microsecond, 0, -time.Second} {
		if _, err := locker.Obtain(t.Context(), "k", ttl, nil); err == nil || errors.Is(err, redislock.ErrNotObtained) {
			t.Errorf("obtained for %v: %v", ttl, err)
		}
		held, err := locker.Obtain(t.Context(), "k", long, nil)
		must(t, err)
		if err := held.Refresh(t.Context(), ttl, nil); err != nil {
			t.Errorf("refreshed for %v: %v", ttl, err)
		}
		if left := p.left(t, 0, "k"); left >= 0 {
			t.Errorf("refreshed for %v: %v left", ttl, left)
		}
	}
}

func TestFindingRedislockDeadlineLeavesTheLock(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{Links: true})
	locker := redislock.New(p.strict(t, 0))
	for key, o := range map[string]*redislock.Options{"random": nil, "own": {Token: "mine"}} {
		warm, err := locker.Obtain(t.Context(), "warm", long, nil) // opens a connection
		must(t, err)
		must(t, warm.Release(t.Context()))
		heal := p.apply(t, p.slow(live.Deadline)) // no reply arrives during the wait
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if held, err := locker.Obtain(ctx, key, long, o); !errors.Is(err, context.DeadlineExceeded) || held != nil {
			t.Errorf("obtain: %v", err)
		}
		cancel()
		live.Wait(t, "the key", func() bool { return p.left(t, 0, key) > 0 })
		heal()
	}
	outlive(300 * time.Millisecond)
	left := p.left(t, 0, "random")
	if _, err := locker.Obtain(t.Context(), "random", long, nil); !errors.Is(err, redislock.ErrNotObtained) ||
		left < long/2 {
		t.Errorf("nobody has it, %v are left, and the next one is told %v", left, err)
	}
	t.Logf("nobody has it, and %v are left", left)
	if _, err := locker.Obtain(t.Context(), "own", long, &redislock.Options{Token: "mine"}); err != nil {
		t.Errorf("again with the same token: %v", err)
	}
}

func TestFindingRedislockRetriesAreCountedOverAllCalls(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	locker := redislock.New(p.clients[0])
	_, err := locker.Obtain(t.Context(), "k", long, nil)
	must(t, err)
	o := &redislock.Options{RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(10*time.Millisecond), 5)}
	tries := p.calls(t)["evalsha"]
	if _, err := locker.Obtain(t.Context(), "k", long, o); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("the first call: %v", err)
	}
	if tries = p.calls(t)["evalsha"] - tries; tries != 6 {
		t.Errorf("the first call tried %d times", tries)
	}
	tries = p.calls(t)["evalsha"]
	if _, err := locker.Obtain(t.Context(), "k", long, o); !errors.Is(err, redislock.ErrNotObtained) {
		t.Errorf("the second call: %v", err)
	}
	if tries = p.calls(t)["evalsha"] - tries; tries != 1 {
		t.Errorf("the second call tried %d times", tries)
	}
}

func TestFindingRedislockReleaseDeniesWhatItDid(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{Links: true})
	locker := redislock.New(p.clients[0])
	held, err := locker.Obtain(t.Context(), "k", long, nil)
	must(t, err)
	must(t, held.Release(t.Context()))
	heal := p.apply(t, p.loseReply())
	held, err = locker.Obtain(t.Context(), "k", long, nil)
	must(t, err) // the library sends the command again, and recognizes its token
	heal()
	p.apply(t, p.loseReply())
	if err := held.Release(t.Context()); !errors.Is(err, redislock.ErrLockNotHeld) {
		t.Errorf("release: %v", err)
	}
}
