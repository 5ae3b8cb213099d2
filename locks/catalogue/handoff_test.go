package catalogue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
	"hammerlock/topologies"
)

// queueUpFor takes a place in the queue of a lock that another worker holds.
func queueUpFor(t *testing.T, l locks.Lock, ttl time.Duration) {
	t.Helper()
	live.Wait(t, "a place in the queue", func() bool {
		_, err := l.Acquire(t.Context(), "k", ttl)
		// no subscription within a second
		if !errors.Is(err, locks.ErrBusy) && !errors.Is(err, topologies.ErrUnreachable) {
			t.Fatalf("a place in the queue: %v", err)
		}
		return errors.Is(err, locks.ErrBusy)
	})
}

// handed waits as a worker does, until the lock is handed over or can be taken.
func handed(t *testing.T, l locks.Lock, ttl time.Duration) locks.Lease {
	t.Helper()
	held, _ := handedAfter(t, l, ttl)
	return held
}

// handedAfter also returns how many ends of leases the wait took.
func handedAfter(t *testing.T, l locks.Lock, ttl time.Duration) (held locks.Lease, ends int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), live.Deadline)
	defer cancel()
	for {
		wake, err := l.(locks.Waiter).Wait(ctx, "k")
		if err != nil && !errors.Is(err, errNoPlace) || ctx.Err() != nil {
			t.Fatalf("it never came: %v", err)
		}
		if wake == history.LeaseEnd {
			ends++
		}
		if held, since, ok := l.(locks.Queue).Handed("k"); ok {
			if held.Until.After(since.Add(ttl)) || since.After(time.Now()) {
				t.Errorf("handed over %v ago, until %v from now", -time.Until(since), time.Until(held.Until))
			}
			return held, ends
		}
		if held, err := l.Acquire(t.Context(), "k", ttl); err == nil {
			return held, ends
		}
	}
}

// TestAHandoffIsTwoTrips counts the round trips of a visit that must wait. There are two: one joins the queue, one
// releases. The subscription is made only once, before.
func TestAHandoffIsTwoTrips(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"single", "cluster"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, topology)
			traffic := &topologies.Traffic{}
			client := home.top.Sites[0].Client(topologies.ClientOptions{ReadTimeout: live.Deadline, Traffic: traffic})
			t.Cleanup(func() { must(t, client.Close()) })
			home.sites = []redis.UniversalClient{client}
			a, b := open(t, handoff, home.env()), open(t, handoff, home.env()) // two processes
			held := grant(t, a, "k", long)
			var before int64
			const visits = 5
			for n := range 2 + visits { // in the first rounds both subscribe
				if n == 2 {
					before = traffic.RoundTrips()
				}
				queueUpFor(t, b, long)
				fence := held.Fence
				must(t, a.Release(t.Context(), held))
				if held = handed(t, b, long); held.Fence <= fence {
					t.Errorf("fencing token %d follows %d", held.Fence, fence)
				}
				a, b = b, a
			}
			if n := traffic.RoundTrips() - before; n != 2*visits {
				t.Errorf("%d round trips in %d visits", n, visits)
			}
			must(t, a.Release(t.Context(), held))
		})
	}
}

// leasesToEnd returns how many leases may have to end before the second in line gets the lock. The lease of the
// first in line always counts. The holder's lease counts too if the holder did not release the lock in time.
func leasesToEnd(t *testing.T, held locks.Lease, released error) int {
	t.Helper()
	switch {
	case released == nil:
		return 1
	case time.Now().Before(held.Until):
		t.Errorf("not released within its lease: %v", released)
	}
	return 2
}

// TestAHandoffOutlivesWhoDies: one part of the system dies, and the other workers wait for at most one lease more.
// The parts are the holder, the first in line, its process and its subscription.
func TestAHandoffOutlivesWhoDies(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, home *stage, holder locks.Lock, held locks.Lease, first func() error) error{
		"holder": func(t *testing.T, _ *stage, holder locks.Lock, _ locks.Lease, first func() error) error {
			must(t, errors.Join(first(), holder.Close()))
			return nil
		},
		"first in line": func(t *testing.T, _ *stage, holder locks.Lock, held locks.Lease, first func() error) error {
			must(t, first())
			return holder.Release(t.Context(), held)
		},
		"subscription": func(t *testing.T, home *stage, holder locks.Lock, held locks.Lease, first func() error) error {
			must(t, first())
			must(t, home.top.Nodes[0].Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
			return holder.Release(t.Context(), held)
		},
	}
	for _, s := range []locks.Spec{handoff, handoffCohort} {
		for name, dies := range cases {
			for _, company := range []string{"in a process that lives", "with its process"} {
				t.Run(s.Name+"/"+name+"/"+company, func(t *testing.T) {
					t.Parallel()
					played(t, nil, "k", func(home *stage, _ string) {
						home.bench = newBench(t, "single")
						home.watch(t, home.sites[0])
						e := home.env()
						holder, err := s.Open(home.env())
						must(t, err)
						defer func() { must(t, holder.Close()) }()
						first, err := s.Open(e)
						must(t, err)
						if company == "in a process that lives" {
							other := open(t, s, e) // it shares the values of the process
							must(t, other.Release(t.Context(), grant(t, other, "other", long)))
						}
						next := open(t, s, home.env())
						held, call := grantCalled(t, holder, "k", home.renewed)
						_, second := first.Acquire(t.Context(), "k", home.renewed)
						_, third := next.Acquire(t.Context(), "k", long)
						if home.late(locks.Until(call, home.renewed)) {
							must(t, first.Close())
							return
						}
						if !errors.Is(second, locks.ErrBusy) || !errors.Is(third, locks.ErrBusy) {
							t.Fatalf("places in the queue: %v, %v", second, third)
						}
						want := leasesToEnd(t, held, dies(t, home, holder, held, first.Close))
						if name == "first in line" {
							want++ // it also wakes when the lease ends: it does not learn who got the lock
						}
						if _, ends := handedAfter(t, next, long); ends > want && !home.slow(home.renewed/4) {
							t.Errorf("the next one waited for the end of %d leases", ends)
						}
					})
				})
			}
		}
	}
}

// TestAHandoffTokenOfUnknownFateIsNotUsedAgain lets a call to a hung server time out, and looks at the queue.
func TestAHandoffTokenOfUnknownFateIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, handoff)
	held := grant(t, a, "k", long)
	queueUpFor(t, b, long)
	queue := func() []string { return home.sites[0].LRange(t.Context(), handoffKeys("k")[1], 0, -1).Val() }
	before := queue()
	must(t, home.top.Nodes[0].Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	lost, err := b.Acquire(ctx, "k", long)
	must(t, home.top.Nodes[0].Resume())
	if err == nil || errors.Is(err, locks.ErrBusy) || len(before) != 1 || lost.Token != before[0] {
		t.Fatalf("a server that hangs answers %v for %q, queued as %q", err, lost.Token, before)
	}
	if err := b.Release(t.Context(), lost); !errors.Is(err, locks.ErrLost) {
		t.Errorf("giving it back: %v", err)
	}
	queueUpFor(t, b, long)
	if after := queue(); len(after) != 1 || after[0] == before[0] {
		t.Errorf("in the queue stands %q, after %q", after, before)
	}
	must(t, a.Release(t.Context(), held))
	must(t, b.Release(t.Context(), handed(t, b, long)))
}

// TestALateGrantIsGivenBack grants the lock to a worker that has died. Its process must pass the lock on.
func TestALateGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, b, c := open(t, handoff, e), open(t, handoff, e), open(t, handoff, home.env())
	held := grant(t, a, "k", long)
	queueUpFor(t, b, long)
	queueUpFor(t, c, long)
	must(t, b.Close()) // it dies; its line stays in the queue, and its process listens
	must(t, a.Release(t.Context(), held))
	must(t, c.Release(t.Context(), handed(t, c, long)))
}

// TestAGrantAfterASlowAnswerIsAskedFor: a message brings a grant just after a slow answer about the place in the
// queue. The beginning of the lease is then known too inexactly, so Handed does not return the grant.
func TestAGrantAfterASlowAnswerIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]bool{2 * time.Millisecond: true, 20 * time.Millisecond: false} {
			l := newHandoff(locks.Env{Sites: []redis.UniversalClient{nil}}, 1)
			now := time.Now()
			p := &handoffPlace{key: "k", ttl: time.Second, call: now.Add(-took), answered: now, clock: time.Hour,
				granted: make(chan handoffGrant, 1)}
			p.granted <- handoffGrant{7, time.Hour + time.Millisecond}
			l.places["k"] = p
			if _, since, ok := l.Handed("k"); ok != want {
				t.Errorf("after an answer that took %v: got %v, granted %v before it, want %v", took, ok,
					now.Sub(since), want)
			}
		}
	})
}

// TestAClockFenceOutlivesWhatAFailoverLoses removes the counter, as if a replica without it had taken over.
func TestAClockFenceOutlivesWhatAFailoverLoses(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	for _, s := range []locks.Spec{fenced, fencedClock, handoff, handoffCohort} {
		l := open(t, s, home.env())
		var fences []int64
		for range 3 {
			held := grant(t, l, s.Name, long)
			fences = append(fences, held.Fence)
			must(t, l.Release(t.Context(), held))
			must(t, home.sites[0].Del(t.Context(), fenceKey(s.Name)).Err())
		}
		slices.Sort(fences)
		if repeated := len(slices.Compact(fences)) < 3; repeated != (s.Name == "fenced") {
			t.Errorf("%s draws %v", s.Name, fences)
		}
	}
	// A server whose clock is behind goes on counting.
	ahead := time.Now().Add(time.Hour).UnixMicro()
	must(t, home.sites[0].Set(t.Context(), fenceKey("k"), ahead, 0).Err())
	if held := grant(t, open(t, fencedClock, home.env()), "k", long); held.Fence != ahead+1 {
		t.Errorf("after %d comes %d", ahead, held.Fence)
	}
}

// TestACohortHandsOverInsideTheProcess: two workers of a process pass the lock to each other while a third one, of
// another process, waits.
func TestACohortHandsOverInsideTheProcess(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, b, c := open(t, handoffCohort, e), open(t, handoffCohort, e), open(t, handoffCohort, home.env())
	first := grant(t, a, "k", long)
	queueUpFor(t, c, long)
	held := first
	for n := 1; n < cohortHolds; n++ {
		queueUpFor(t, b, long)
		must(t, a.Release(t.Context(), held))
		next, since, ok := b.(locks.Queue).Handed("k")
		if !ok || next.Fence != first.Fence+int64(n) || grantOf(next.Token) != first.Token ||
			next.Token == held.Token || next.Until != first.Until {
			t.Fatalf("hand-off %d inside the process: %v, %+v, %v ago", n, ok, next, -time.Until(since))
		}
		if most := locks.Until(since, long-next.Spent); next.Until.After(most) {
			t.Errorf("of its lease %v are over, and it is believed in %v too long", next.Spent, next.Until.Sub(most))
		}
		if err := a.Release(t.Context(), held); !errors.Is(err, locks.ErrLost) {
			t.Errorf("a second release says %v", err)
		}
		held, a, b = next, b, a
	}
	queueUpFor(t, b, long)
	must(t, a.Release(t.Context(), held))
	other := handed(t, c, long)
	if other.Fence <= held.Fence || strings.Contains(other.Token, "#") {
		t.Errorf("the other process gets %+v", other)
	}
	must(t, c.Release(t.Context(), other))
	held = handed(t, b, long)
	must(t, b.Release(t.Context(), held))
}

// TestACohortPassesNoVagueLeaseOn: the server answers slowly, so the end of its lease is not known exactly. The
// holder cannot tell the next worker when the lease ends. So the next worker asks the server itself.
func TestACohortPassesNoVagueLeaseOn(t *testing.T) {
	t.Parallel()
	const lease, slow = 10 * time.Second, time.Second
	home := newBench(t, "single")
	e := home.env()
	a, b := open(t, handoffCohort, e), open(t, handoffCohort, e)
	warm := grant(t, a, "warm", lease)
	must(t, a.Release(t.Context(), warm))
	must(t, home.sites[0].Do(t.Context(), "CLIENT", "PAUSE", slow.Milliseconds()).Err())
	first := grant(t, a, "k", lease)
	queueUpFor(t, b, lease)
	must(t, a.Release(t.Context(), first))
	if next, _, ok := b.(locks.Queue).Handed("k"); ok {
		t.Errorf("handed over: %+v", next)
	}
	next := grant(t, b, "k", lease)
	if strings.Contains(next.Token, "#") || next.Spent != 0 {
		t.Errorf("got %+v, want a grant of the server", next)
	}
	must(t, b.Release(t.Context(), next))
}

// TestACohortDoesNotWaitForItsDead: a worker dies with the lock, and its process goes on.
func TestACohortDoesNotWaitForItsDead(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, err := handoffCohort.Open(e)
	must(t, err)
	b := open(t, handoffCohort, e)
	grant(t, a, "k", 300*time.Millisecond)
	queueUpFor(t, b, long)
	must(t, a.Close())
	must(t, b.Release(t.Context(), handed(t, b, long)))
}
