package locks

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/topologies"
)

// queueUpFor takes a place in the queue of a lock that somebody else has.
func queueUpFor(t *testing.T, l Lock, ttl time.Duration) {
	t.Helper()
	if _, err := l.Acquire(t.Context(), "k", ttl); !errors.Is(err, ErrBusy) {
		t.Fatalf("a place in the queue: %v", err)
	}
}

// handed waits as a worker does, until the lock is handed over or can be taken, and says how long that took.
func handed(t *testing.T, l Lock, ttl time.Duration) (Lease, time.Duration) {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 20*time.Second {
		if _, err := l.(Waiter).Wait(t.Context(), "k"); err != nil && !errors.Is(err, errNoPlace) {
			t.Fatal(err)
		}
		if lease, since, ok := l.(Queue).Handed("k"); ok {
			if lease.Until.After(since.Add(ttl)) || since.After(time.Now()) {
				t.Errorf("handed over %v ago, until %v from now", time.Since(since), time.Until(lease.Until))
			}
			return lease, time.Since(start)
		}
		if lease, err := l.Acquire(t.Context(), "k", ttl); err == nil {
			return lease, time.Since(start)
		}
	}
	t.Fatal("it never came")
	return Lease{}, 0
}

// TestAHandoffIsTwoTrips counts the trips of a visit that has to wait: into the queue, and the release. The subscription is made once.
func TestAHandoffIsTwoTrips(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"single", "cluster"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			home := newBench(t, topology)
			traffic := &topologies.Traffic{}
			client := home.top.Sites[0].Client(topologies.ClientOptions{Traffic: traffic})
			t.Cleanup(func() { must(t, client.Close()) })
			home.sites = []redis.UniversalClient{client}
			const ttl = 20 * time.Second
			a, b := open(t, handoff, home.env()), open(t, handoff, home.env()) // two processes
			held := grant(t, a, "k", ttl)
			var before int64
			const visits = 5
			for n := range 2 + visits { // first both subscribe
				if n == 2 {
					before = traffic.RoundTrips()
				}
				queueUpFor(t, b, ttl)
				fence := held.Fence
				must(t, a.Release(t.Context(), held))
				if held, _ = handed(t, b, ttl); held.Fence <= fence {
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

// TestAHandoffOutlivesWhoDies: a crash of the holder, of the first in line, of its whole process, or of its subscription costs the
// others a lease at most.
func TestAHandoffOutlivesWhoDies(t *testing.T) {
	t.Parallel()
	const ttl, late = 600 * time.Millisecond, 400 * time.Millisecond // for a busy machine
	cases := map[string]func(t *testing.T, home *bench, holder Lock, held Lease, first func() error){
		"holder": func(t *testing.T, _ *bench, holder Lock, _ Lease, first func() error) {
			must(t, errors.Join(first(), holder.Close()))
		},
		"first in line": func(t *testing.T, _ *bench, holder Lock, held Lease, first func() error) {
			must(t, errors.Join(first(), holder.Release(t.Context(), held)))
		},
		"subscription": func(t *testing.T, home *bench, holder Lock, held Lease, first func() error) {
			must(t, first())
			must(t, home.top.Nodes[0].Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub").Err())
			must(t, holder.Release(t.Context(), held))
		},
	}
	for _, s := range []Spec{handoff, handoffCohort} {
		for name, dies := range cases {
			for _, company := range []string{"in a process that lives", "with its process"} {
				t.Run(s.Name+"/"+name+"/"+company, func(t *testing.T) {
					t.Parallel()
					home := newBench(t, "single")
					e := home.env()
					holder, err := s.Open(home.env())
					must(t, err)
					first, err := s.Open(e)
					must(t, err)
					if company == "in a process that lives" {
						other := open(t, s, e)
						must(t, other.Release(t.Context(), grant(t, other, "other", ttl))) // it shares what the process shares
					}
					next := open(t, s, home.env())
					held, err := holder.Acquire(t.Context(), "k", ttl)
					must(t, err)
					queueUpFor(t, first, ttl)
					queueUpFor(t, next, ttl)
					died := time.Now()
					dies(t, home, holder, held, first.Close)
					lease, _ := handed(t, next, ttl)
					took := time.Since(died)
					t.Logf("the next one had the lock after %v, a lease is %v", took.Round(time.Millisecond), ttl)
					if took > ttl+late {
						t.Errorf("the next one had the lock after %v, more than a lease of %v", took, ttl)
					}
					must(t, next.Release(t.Context(), lease))
				})
			}
		}
	}
}

// TestAHandoffTokenOfUnknownFateIsNotUsedAgain lets a call to a server that hangs time out, and looks at what stands in the queue.
func TestAHandoffTokenOfUnknownFateIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	a, b := home.pair(t, handoff)
	held := grant(t, a, "k", 20*time.Second)
	queueUpFor(t, b, 20*time.Second)
	queue := func() []string { return home.sites[0].LRange(t.Context(), handoffKeys("k")[1], 0, -1).Val() }
	before := queue()
	must(t, home.top.Nodes[0].Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	lost, err := b.Acquire(ctx, "k", 20*time.Second)
	must(t, home.top.Nodes[0].Resume())
	if err == nil || errors.Is(err, ErrBusy) || len(before) != 1 || lost.Token != before[0] {
		t.Fatalf("a server that hangs answers %v for %q, queued as %q", err, lost.Token, before)
	}
	if err := b.Release(t.Context(), lost); !errors.Is(err, ErrLost) {
		t.Errorf("giving it back: %v", err)
	}
	queueUpFor(t, b, 20*time.Second)
	if after := queue(); len(after) != 1 || after[0] == before[0] {
		t.Errorf("in the queue stands %q, after %q", after, before)
	}
	must(t, a.Release(t.Context(), held))
	held, _ = handed(t, b, 20*time.Second)
	must(t, b.Release(t.Context(), held))
}

// TestALateGrantIsGivenBack publishes a grant that nobody waits for, as when a visit was called off in the same moment.
func TestALateGrantIsGivenBack(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	a, b, c := open(t, handoff, e), open(t, handoff, e), open(t, handoff, home.env())
	held := grant(t, a, "k", 20*time.Second)
	queueUpFor(t, b, 20*time.Second)
	queueUpFor(t, c, 20*time.Second)
	must(t, b.Close()) // it dies; its line stands in the queue, and its process listens
	must(t, a.Release(t.Context(), held))
	held, took := handed(t, c, 20*time.Second)
	if took > 5*time.Second {
		t.Errorf("the next one waited for %v", took)
	}
	must(t, c.Release(t.Context(), held))
}

// TestAGrantAfterASlowAnswerIsAskedFor: the grant came a millisecond after the place in the queue. When that was taken is known as well as
// its answer was quick.
func TestAGrantAfterASlowAnswerIsAskedFor(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]bool{2 * time.Millisecond: true, 20 * time.Millisecond: false} {
		l := newHandoff(Env{Sites: []redis.UniversalClient{nil}}, 1)
		now := time.Now()
		p := &handoffPlace{key: "k", ttl: time.Second, call: now.Add(-took), answered: now, clock: time.Hour, granted: make(chan handoffGrant, 1)}
		p.granted <- handoffGrant{7, time.Hour + time.Millisecond}
		l.places["k"] = p
		if _, since, ok := l.Handed("k"); ok != want {
			t.Errorf("after an answer that took %v: got %v, granted %v before it, want %v", took, ok, now.Sub(since), want)
		}
	}
}

// TestAClockFenceOutlivesWhatAFailoverLoses removes the counter, as a replica does that had not heard of it.
func TestAClockFenceOutlivesWhatAFailoverLoses(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	for _, s := range []Spec{fenced, fencedClock, handoff, handoffCohort} {
		l := open(t, s, home.env())
		var fences []int64
		for range 3 {
			held := grant(t, l, s.Name, time.Minute)
			fences = append(fences, held.Fence)
			must(t, l.Release(t.Context(), held))
			must(t, home.sites[0].Del(t.Context(), fenceKey(s.Name)).Err())
		}
		slices.Sort(fences)
		if repeated := len(slices.Compact(fences)) < 3; repeated != (s.Name == "fenced") {
			t.Errorf("%s draws %v", s.Name, fences)
		}
	}
	// A server whose clock is behind counts on.
	ahead := time.Now().Add(time.Hour).UnixMicro()
	must(t, home.sites[0].Set(t.Context(), fenceKey("k"), ahead, 0).Err())
	if held := grant(t, open(t, fencedClock, home.env()), "k", time.Minute); held.Fence != ahead+1 {
		t.Errorf("after %d comes %d", ahead, held.Fence)
	}
}

// TestACohortHandsOverInsideTheProcess lets two workers of a process pass the lock to each other, while another process waits.
func TestACohortHandsOverInsideTheProcess(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	const ttl = 20 * time.Second
	a, b, c := open(t, handoffCohort, e), open(t, handoffCohort, e), open(t, handoffCohort, home.env())
	first := grant(t, a, "k", ttl)
	queueUpFor(t, c, ttl)
	held := first
	for n := 1; n < cohortHolds; n++ {
		queueUpFor(t, b, ttl)
		must(t, a.Release(t.Context(), held))
		next, since, ok := b.(Queue).Handed("k")
		if !ok || next.Fence != first.Fence+int64(n) || grantOf(next.Token) != first.Token || next.Token == held.Token || next.Until != first.Until {
			t.Fatalf("hand-off %d inside the process: %v, %+v, %v ago", n, ok, next, time.Since(since))
		}
		if most := until(since, ttl-next.Spent); next.Until.After(most) {
			t.Errorf("of its lease %v are over, and it is believed in %v too long", next.Spent, next.Until.Sub(most))
		}
		if err := a.Release(t.Context(), held); !errors.Is(err, ErrLost) {
			t.Errorf("a second release says %v", err)
		}
		held, a, b = next, b, a
	}
	queueUpFor(t, b, ttl)
	must(t, a.Release(t.Context(), held))
	other, took := handed(t, c, ttl)
	if other.Fence <= held.Fence || strings.Contains(other.Token, "#") || took > 5*time.Second {
		t.Errorf("the other process gets %+v after %v", other, took)
	}
	must(t, c.Release(t.Context(), other))
	held, _ = handed(t, b, ttl)
	must(t, b.Release(t.Context(), held))
}

// TestACohortDoesNotWaitForItsDead: a worker dies with the lock, and its process lives.
func TestACohortDoesNotWaitForItsDead(t *testing.T) {
	t.Parallel()
	home := newBench(t, "single")
	e := home.env()
	const ttl = 500 * time.Millisecond
	a, err := handoffCohort.Open(e)
	must(t, err)
	b := open(t, handoffCohort, e)
	grant(t, a, "k", ttl)
	queueUpFor(t, b, ttl)
	must(t, a.Close())
	held, took := handed(t, b, ttl)
	if took > 2*ttl {
		t.Errorf("the next one waited for %v, a lease is %v", took, ttl)
	}
	must(t, b.Release(t.Context(), held))
}
