package catalogue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
)

// share takes a permit. It fails the test if there is none.
func share(t *testing.T, l locks.Lock, key string, ttl time.Duration) locks.Lease {
	t.Helper()
	held, err := l.(locks.Sharer).AcquireShare(t.Context(), key, ttl, 1)
	must(t, err)
	return held
}

// TestEveryLockThatClaimsSharersHasThem is about readers and permits, with scripts and in a cluster.
func TestEveryLockThatClaimsSharersHasThem(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"single", "cluster"} {
		home := newBench(t, topology)
		for _, s := range every {
			if s.Claims.Alone() || !s.Claims.Excludes {
				continue
			}
			t.Run(topology+" "+s.Name, func(t *testing.T) {
				t.Parallel()
				a, b := home.pair(t, s)
				key := s.Name + ":{page-0}"
				first, second := share(t, a, key, long), share(t, b, key, long)
				if _, err := b.Acquire(t.Context(), key, long); !errors.Is(err, locks.ErrBusy) {
					t.Errorf("exclusive among two that share: %v, want ErrBusy", err)
				}
				first, err := a.Extend(t.Context(), first, long)
				must(t, errors.Join(err, a.Release(t.Context(), first), b.Release(t.Context(), second)))
				held := grant(t, b, key, long)
				if _, err := a.(locks.Sharer).AcquireShare(t.Context(), key, long, 1); !errors.Is(err, locks.ErrBusy) {
					t.Errorf("a share of what is exclusive: %v, want ErrBusy", err)
				}
				must(t, b.Release(t.Context(), held))
			})
		}
	}
}

// TestSharesExpire is about the leases of readers and permits, and the answers to late holders.
func TestSharesExpire(t *testing.T) {
	t.Parallel()
	const briefly = 60 * time.Millisecond
	home := newBench(t, "single")
	for _, s := range every {
		if s.Claims.Alone() || !s.Claims.Expires || s.Broken != "" {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			a, b := home.pair(t, s)
			first := share(t, a, s.Name, briefly)
			second := share(t, b, s.Name, long)
			outlive(2 * briefly)
			if err := a.Release(t.Context(), first); !errors.Is(err, locks.ErrLost) {
				t.Errorf("release after its lease: %v, want ErrLost", err)
			}
			if _, err := a.Extend(t.Context(), first, briefly); !errors.Is(err, locks.ErrLost) {
				t.Errorf("extended after its lease: %v, want ErrLost", err)
			}
			must(t, b.Release(t.Context(), second))
			must(t, a.Release(t.Context(), grant(t, a, s.Name, long)))
		})
	}
}

func TestUpgradesAreExclusive(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, readWrite)
	first, second := share(t, a, "k", long), share(t, b, "k", long)
	up := a.(locks.Upgrader)
	if _, err := up.Upgrade(t.Context(), first, long); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("a writer beside a reader: %v, want ErrBusy", err)
	}
	must(t, b.Release(t.Context(), second))
	writer, err := up.Upgrade(t.Context(), first, long)
	must(t, err)
	if _, err := b.(locks.Sharer).AcquireShare(t.Context(), "k", long, 1); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("a reader beside a writer: %v, want ErrBusy", err)
	}
	must(t, a.Release(t.Context(), writer))
	if _, err := up.Upgrade(t.Context(), first, long); !errors.Is(err, locks.ErrLost) {
		t.Errorf("of what it has given back: %v, want ErrLost", err)
	}
}

// TestAWriterThatGivesUpLetsReadersIn is about the place of a waiting writer.
func TestAWriterThatGivesUpLetsReadersIn(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, readWrite)
	share(t, a, "k", long)
	if _, err := b.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
		t.Fatalf("got %v, want ErrBusy", err)
	}
	if _, err := a.(locks.Sharer).AcquireShare(t.Context(), "k", long, 1); !errors.Is(err, locks.ErrBusy) {
		t.Errorf("a reader who comes after a writer: %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.(locks.Waiter).Wait(ctx, "k")
	must(t, err)
	share(t, a, "k", long)
}

func TestClaimsAreOffered(t *testing.T) {
	t.Parallel()
	for _, s := range every {
		if s.Claims.Alone() || s.Sites != locks.OneSite {
			continue
		}
		l, err := readWrite.Open(locks.Env{Sites: make([]redis.UniversalClient, 1)})
		must(t, err)
		must(t, s.Offers(l))
		if l, err = lease.Open(locks.Env{Sites: make([]redis.UniversalClient, 1)}); err != nil || s.Claims.Excludes &&
			s.Offers(l) == nil {
			t.Errorf("%s: lease offers what it claims, %v", s.Name, err)
		}
	}
}

func TestALockThatWaitsOffersIt(t *testing.T) {
	t.Parallel()
	s := lease
	s.Waits = true
	if l, err := s.Open(locks.Env{Sites: make([]redis.UniversalClient, 1)}); err != nil || s.Offers(l) == nil {
		t.Errorf("lease waits by itself: %v", err)
	}
}
