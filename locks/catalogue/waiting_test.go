package catalogue

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

// awoken is the result of a Wait.
type awoken struct {
	wake history.Wake
	err  error
}

func startWait(ctx context.Context, w locks.Lock, key string) <-chan awoken {
	done := make(chan awoken, 1)
	go func() {
		wake, err := w.(locks.Waiter).Wait(ctx, key)
		done <- awoken{wake, err}
	}()
	return done
}

// subscribed waits until the server has a subscription. The waiter checks the lock after the server's confirmation,
// so it cannot miss a release from now on.
func (b *bench) subscribed(t *testing.T) {
	t.Helper()
	live.Wait(t, "a subscription", func() bool {
		channels, err := b.sites[0].PubSubChannels(t.Context(), "*").Result()
		must(t, err)
		return len(channels) > 0
	})
}

// awake returns the result of a Wait that must end.
func awake(t *testing.T, done <-chan awoken) (got awoken) {
	t.Helper()
	live.Wait(t, "that a waiter is woken", func() bool {
		select {
		case got = <-done:
			return true
		default:
			return false
		}
	})
	return got
}

func TestWaitersAreWokenByARelease(t *testing.T) {
	t.Parallel()
	for _, s := range []locks.Spec{redisson, fair, handoff, handoffCohort} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, "single")
			// Two processes, because a message must reach both.
			a, b := open(t, s, home.env()), open(t, s, home.env())
			held := grant(t, a, "k", long)
			if _, err := b.Acquire(t.Context(), "k", long); !refused(err) {
				t.Fatal(err)
			}
			done := startWait(t.Context(), b, "k")
			home.subscribed(t)
			must(t, a.Release(t.Context(), held))
			must(t, awake(t, done).err) // a waiter that looks after the release finds the lock free
			must(t, b.Release(t.Context(), grant(t, b, "k", long)))
		})
	}
}

// TestAMessageWakesAWaiterThatSleeps passes a message to the hub itself, so that nothing else can wake the waiter.
func TestAMessageWakesAWaiterThatSleeps(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, redisson)
	grant(t, a, "k", long)
	done := startWait(t.Context(), b, "k")
	home.subscribed(t)
	must(t, home.sites[0].Publish(t.Context(), "redisson_lock__channel:{k}", "0").Err())
	if got := awake(t, done); got.err != nil || got.wake != history.Signal {
		t.Errorf("woken by %s: %v, want a signal", got.wake, got.err)
	}
}

func TestOneMessageWakesOneWaiterOfAProcess(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, b, c := open(t, redisson, e), open(t, redisson, e), open(t, redisson, e)
	grant(t, a, "k", long)
	ctx, cancel := context.WithCancel(t.Context())
	first, second := startWait(ctx, b, "k"), startWait(ctx, c, "k")
	home.subscribed(t)
	must(t, home.sites[0].Publish(t.Context(), "redisson_lock__channel:{k}", "0").Err())
	select {
	case <-first:
		first = second
	case <-second:
	}
	select {
	case got := <-first:
		t.Errorf("the other one was woken, too, by %s", got.wake)
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	if got := awake(t, first); !errors.Is(got.err, context.Canceled) {
		t.Errorf("called off, it says %v", got.err)
	}
}

// TestWaitersDoNotOutsleepALease lets a holder die, so that nobody sends a message.
func TestWaitersDoNotOutsleepALease(t *testing.T) {
	t.Parallel()
	for _, s := range []locks.Spec{redisson, fair, handoff, handoffCohort} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			played(t, newBench(t, "single"), "k", func(home *stage, key string) {
				a, err := s.Open(home.env())
				must(t, err)
				b := open(t, s, home.env())
				home.watch(t, home.sites[0])
				grant(t, a, key, home.renewed)
				must(t, a.Close())
				told := false
				live.Wait(t, "the lock of the dead", func() bool {
					if _, err := b.Acquire(t.Context(), key, long); err == nil {
						return true
					}
					got := awake(t, startWait(t.Context(), b, key))
					must(t, got.err)
					told = told || got.wake == history.LeaseEnd
					return false
				})
				if !told && !home.slow(home.renewed/4) {
					t.Error("it was not told of the lease's end")
				}
			})
		})
	}
}

func TestQueuesServeInOrder(t *testing.T) {
	t.Parallel()
	for _, s := range []locks.Spec{fair, handoff} {
		t.Run(s.Name, func(t *testing.T) { servesInOrder(t, s) })
	}
}

func servesInOrder(t *testing.T, s locks.Spec) {
	t.Parallel()
	home := newBench(t, "single")
	var crew []locks.Lock
	for range 5 {
		crew = append(crew, open(t, s, home.env()))
	}
	held := grant(t, crew[0], "k", long)
	for _, l := range crew[1:] { // they come in this order
		if _, err := l.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
			t.Fatal(err)
		}
	}
	last := crew[0]
	for i, next := range crew[1:] {
		must(t, last.Release(t.Context(), held))
		for _, eager := range crew[i+2:] {
			if _, err := eager.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
				t.Errorf("somebody overtook waiter %d: %v", i, err)
			}
		}
		held, last = grant(t, next, "k", long), next
	}
	must(t, last.Release(t.Context(), held))
}

func TestFairDropsDeadWaiters(t *testing.T) {
	t.Parallel()
	const briefly = 60 * time.Millisecond
	home := newBench(t, "single")
	a, dead, b := open(t, fair, home.env()), open(t, fair, home.env()), open(t, fair, home.env())
	held := grant(t, a, "k", long)
	if _, err := dead.Acquire(t.Context(), "k", briefly); !errors.Is(err, locks.ErrBusy) {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
		t.Fatal(err)
	}
	outlive(2 * briefly)
	must(t, a.Release(t.Context(), held))
	must(t, b.Release(t.Context(), grant(t, b, "k", long)))
}

func TestFairLetsGoOfAPlace(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b, c := open(t, fair, home.env()), open(t, fair, home.env()), open(t, fair, home.env())
	held := grant(t, a, "k", long)
	for _, l := range []locks.Lock{b, c} {
		if _, err := l.Acquire(t.Context(), "k", long); !errors.Is(err, locks.ErrBusy) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.(locks.Waiter).Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a visit that gives up is told %v", err)
	}
	must(t, a.Release(t.Context(), held))
	must(t, c.Release(t.Context(), grant(t, c, "k", long)))
	if keys := home.sites[0].Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("the queue leaves %v", keys)
	}
}

func TestSpinBacksOffUpToACap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &spinLock{rand: rand.New(rand.NewPCG(1, 1))}
		start := time.Now()
		for i := range 12 {
			wake, err := l.Wait(t.Context(), "k")
			must(t, err)
			if want := min(firstSpin<<i, maxSpin); l.bound != want || wake != history.Poll {
				t.Errorf("try %d: bound %v, want %v, by %s", i, l.bound, want, wake)
			}
		}
		if time.Now().After(start.Add(12 * maxSpin)) {
			t.Errorf("12 waits took %v", -time.Until(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Wait(ctx, "k"); err == nil || l.bound != 0 {
			t.Errorf("called off: %v, bound %v", err, l.bound)
		}
	})
}

func TestRueidislockWaitsByItself(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	for name, other := range map[string]locks.Env{"one process": e, "two processes": home.env()} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, rueidislockSpec(), e), open(t, rueidislockSpec(), other)
			held := grant(t, a, "k", long)
			if err := refusal(t, b, "k"); !errors.Is(err, locks.ErrBusy) {
				t.Fatal(err)
			}
			done := startWait(t.Context(), b, "k")
			must(t, a.Release(t.Context(), held))
			if got := awake(t, done); got.err != nil || got.wake != history.Signal {
				t.Fatalf("woken by %s: %v", got.wake, got.err)
			}
			if err := refusal(t, a, "k"); !errors.Is(err, locks.ErrBusy) {
				t.Errorf("a waiter was granted the lock, and somebody else got %v", err)
			}
			outlive(50 * time.Millisecond)
			held = grant(t, b, "k", long)
			if held.Spent < 50*time.Millisecond || held.Token == "" {
				t.Errorf("granted %v ago with token %q, want at least 50 ms", held.Spent, held.Token)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := a.(locks.Waiter).Wait(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) &&
				!errors.Is(err, context.Canceled) {
				t.Errorf("a visit that gives up is told %v", err)
			}
			must(t, b.Release(t.Context(), held))
		})
	}
}

// TestRueidislocksRefusedTriesAreNoExtensions wakes a waiter a few times although the lock is held. These tries must
// not be recorded as extensions, and the lease must count from the try that was granted.
func TestRueidislocksRefusedTriesAreNoExtensions(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	recorded := renewals(&e)
	a, b := open(t, rueidislockSpec(), home.env()), open(t, rueidislockSpec(), e)
	held := grant(t, a, "k", long) // no renewal comes within the test
	if err := refusal(t, b, "k"); !errors.Is(err, locks.ErrBusy) {
		t.Fatal(err)
	}
	done := startWait(t.Context(), b, "k")
	var second time.Time
	for round := range 5 {
		outlive(50 * time.Millisecond)
		if round == 1 {
			second = time.Now()
		}
		must(t, home.sites[0].PExpire(t.Context(), "rueidislock:0:k", long).Err())
	}
	must(t, a.Release(t.Context(), held))
	must(t, awake(t, done).err)
	held = grant(t, b, "k", long)
	if time.Now().Add(-held.Spent).Before(second) {
		t.Errorf("the lease counts from %v ago, not from the try that was granted", held.Spent)
	}
	must(t, b.Release(t.Context(), held))
	if ops := recorded(); len(ops) > 0 {
		t.Errorf("%d extensions of a hold that nobody renewed, the first %+v", len(ops), ops[0])
	}
}
