package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hammerlock/history"
)

// awoken is what a Wait came to.
type awoken struct {
	wake history.Wake
	err  error
	took time.Duration
}

func startWait(ctx context.Context, w Lock, key string) <-chan awoken {
	done := make(chan awoken, 1)
	start := time.Now()
	go func() {
		wake, err := w.(Waiter).Wait(ctx, key)
		done <- awoken{wake, err, time.Since(start)}
	}()
	return done
}

// subscribed waits until the server knows of a channel. A waiter that is told so looks at the lock once more, so a
// release after it cannot be missed.
func (b *bench) subscribed(t *testing.T) {
	t.Helper()
	for range 1000 {
		channels, err := b.sites[0].PubSubChannels(t.Context(), "*").Result()
		must(t, err)
		if len(channels) > 0 {
			return
		}
		outlive(2 * time.Millisecond)
	}
	t.Fatal("nobody subscribed")
}

func TestWaitersAreWokenByARelease(t *testing.T) {
	t.Parallel()
	for _, s := range []Spec{redisson, fair, handoff, handoffCohort} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, "single")
			// Two processes: a message must reach both.
			a, b := open(t, s, home.env()), open(t, s, home.env())
			held := grant(t, a, "k", 20*time.Second)
			if _, err := b.Acquire(t.Context(), "k", 20*time.Second); !refused(err) {
				t.Fatal(err)
			}
			done := startWait(t.Context(), b, "k")
			home.subscribed(t)
			must(t, a.Release(t.Context(), held))
			got := <-done
			// The release may come before the waiter looks: then it finds the lock free.
			if got.err != nil || got.took > 2*time.Second {
				t.Errorf("woken by %s after %v: %v", got.wake, got.took, got.err)
			}
			must(t, b.Release(t.Context(), grant(t, b, "k", time.Second)))
		})
	}
}

// TestAMessageWakesAWaiterThatSleeps gives the hub a message by hand, so that nothing else can have woken it.
func TestAMessageWakesAWaiterThatSleeps(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, redisson)
	grant(t, a, "k", 20*time.Second)
	done := startWait(t.Context(), b, "k")
	home.subscribed(t)
	must(t, home.sites[0].Publish(t.Context(), "redisson_lock__channel:{k}", "0").Err())
	if got := <-done; got.err != nil || got.wake != history.Signal {
		t.Errorf("woken by %s: %v, want a signal", got.wake, got.err)
	}
}

func TestOneMessageWakesOneWaiterOfAProcess(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, b, c := open(t, redisson, e), open(t, redisson, e), open(t, redisson, e)
	grant(t, a, "k", 20*time.Second)
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
	if got := <-first; !errors.Is(got.err, context.Canceled) {
		t.Errorf("called off, it says %v", got.err)
	}
}

// TestWaitersDoNotOutsleepALease lets a holder die: nobody sends a message.
func TestWaitersDoNotOutsleepALease(t *testing.T) {
	t.Parallel()
	const ttl = 300 * time.Millisecond
	for _, s := range []Spec{redisson, fair, handoff, handoffCohort} {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, "single")
			var took time.Duration
			for try := range 3 { // on a busy machine the lease can have ended before anybody waits for it
				told := false
				if took, told = afterADeath(t, home, s, fmt.Sprint("k", try), ttl); told && took <= 4*ttl {
					return
				}
			}
			t.Errorf("waited for %v after a lease of %v, or was not told of its end", took, ttl)
		})
	}
}

// afterADeath says how long a waiter waits for the lock of a worker that has died, and whether it was told of the lease's end.
func afterADeath(t *testing.T, home *bench, s Spec, key string, ttl time.Duration) (took time.Duration, told bool) {
	t.Helper()
	a, err := s.Open(home.env())
	must(t, err)
	b := open(t, s, home.env())
	grant(t, a, key, ttl)
	must(t, a.Close())
	start := time.Now()
	for time.Since(start) < 5*time.Second {
		if _, err := b.Acquire(t.Context(), key, ttl); err == nil {
			break
		}
		wake, err := b.(Waiter).Wait(t.Context(), key)
		must(t, err)
		told = told || wake == history.LeaseEnd
	}
	return time.Since(start), told
}

func TestQueuesServeInOrder(t *testing.T) {
	t.Parallel()
	for _, s := range []Spec{fair, handoff} {
		t.Run(s.Name, func(t *testing.T) { servesInOrder(t, s) })
	}
}

func servesInOrder(t *testing.T, s Spec) {
	t.Parallel()
	const ttl = 20 * time.Second
	home := newBench(t, "single")
	var crew []Lock
	for range 5 {
		crew = append(crew, open(t, s, home.env()))
	}
	held := grant(t, crew[0], "k", ttl)
	for _, l := range crew[1:] { // they come in this order
		if _, err := l.Acquire(t.Context(), "k", ttl); !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	last := crew[0]
	for i, next := range crew[1:] {
		must(t, last.Release(t.Context(), held))
		for _, eager := range crew[i+2:] {
			if _, err := eager.Acquire(t.Context(), "k", ttl); !errors.Is(err, ErrBusy) {
				t.Errorf("somebody overtook waiter %d: %v", i, err)
			}
		}
		held, last = grant(t, next, "k", ttl), next
	}
	must(t, last.Release(t.Context(), held))
}

func TestFairDropsDeadWaiters(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, dead, b := open(t, fair, home.env()), open(t, fair, home.env()), open(t, fair, home.env())
	held := grant(t, a, "k", 20*time.Second)
	if _, err := dead.Acquire(t.Context(), "k", briefly); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), "k", 20*time.Second); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	outlive(2 * briefly)
	must(t, a.Release(t.Context(), held))
	must(t, b.Release(t.Context(), grant(t, b, "k", 20*time.Second)))
}

func TestFairLetsGoOfAPlace(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b, c := open(t, fair, home.env()), open(t, fair, home.env()), open(t, fair, home.env())
	held := grant(t, a, "k", 20*time.Second)
	for _, l := range []Lock{b, c} {
		if _, err := l.Acquire(t.Context(), "k", 20*time.Second); !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.(Waiter).Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a visit that gives up is told %v", err)
	}
	must(t, a.Release(t.Context(), held))
	must(t, c.Release(t.Context(), grant(t, c, "k", 20*time.Second)))
	if keys := home.sites[0].Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("the queue leaves %v", keys)
	}
}

func TestSpinBacksOffUpToACap(t *testing.T) {
	t.Parallel()
	l := &spinLock{rand: rand.New(rand.NewPCG(1, 1))}
	var total time.Duration
	for i := range 12 {
		start := time.Now()
		wake, err := l.Wait(t.Context(), "k")
		must(t, err)
		total += time.Since(start)
		if want := min(firstSpin<<i, maxSpin); l.bound != want || wake != history.Poll {
			t.Errorf("try %d: bound %v, want %v, by %s", i, l.bound, want, wake)
		}
	}
	if total > 12*maxSpin {
		t.Errorf("12 waits took %v", total)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Wait(ctx, "k"); err == nil || l.bound != 0 {
		t.Errorf("called off: %v, bound %v", err, l.bound)
	}
}

func TestRueidislockWaitsByItself(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	for name, other := range map[string]Env{"one process": e, "two processes": home.env()} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, rueidislockSpec(), e), open(t, rueidislockSpec(), other)
			held := grant(t, a, "k", 2*time.Second)
			if err := refusal(t, b, "k"); !errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
			done := startWait(t.Context(), b, "k")
			must(t, a.Release(t.Context(), held))
			got := <-done
			if got.err != nil || got.wake != history.Signal || got.took > time.Second {
				t.Fatalf("woken by %s after %v: %v", got.wake, got.took, got.err)
			}
			if err := refusal(t, a, "k"); !errors.Is(err, ErrBusy) {
				t.Errorf("a waiter was granted the lock, and somebody else got %v", err)
			}
			outlive(50 * time.Millisecond)
			held = grant(t, b, "k", 2*time.Second)
			if held.Spent < 50*time.Millisecond || held.Token == "" {
				t.Errorf("granted %v ago with token %q, want at least 50 ms", held.Spent, held.Token)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := a.(Waiter).Wait(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				t.Errorf("a visit that gives up is told %v", err)
			}
			must(t, b.Release(t.Context(), held))
		})
	}
}

// TestRueidislocksRefusedTriesAreNoExtensions wakes a waiter for nothing a few times: it draws a new token each time,
// and its lease counts from the try that was granted.
func TestRueidislocksRefusedTriesAreNoExtensions(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	recorded := renewals(&e)
	a, b := open(t, rueidislockSpec(), home.env()), open(t, rueidislockSpec(), e)
	const ttl = 10 * time.Second // nobody renews within the test
	held := grant(t, a, "k", ttl)
	if err := refusal(t, b, "k"); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	done := startWait(t.Context(), b, "k")
	var second time.Time
	for round := range 5 {
		outlive(50 * time.Millisecond)
		if round == 1 {
			second = time.Now()
		}
		must(t, home.sites[0].PExpire(t.Context(), "rueidislock:0:k", ttl).Err())
	}
	must(t, a.Release(t.Context(), held))
	if got := <-done; got.err != nil {
		t.Fatalf("woken by %s after %v: %v", got.wake, got.took, got.err)
	}
	held = grant(t, b, "k", ttl)
	if held.Spent > time.Since(second) {
		t.Errorf("the lease counts from %v ago, not from the try that was granted", held.Spent)
	}
	must(t, b.Release(t.Context(), held))
	if ops := recorded(); len(ops) > 0 {
		t.Errorf("%d extensions of a hold that nobody renewed, the first %+v", len(ops), ops[0])
	}
}
