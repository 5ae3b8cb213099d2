package explore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hammerlock/checker"
	"hammerlock/locks"
)

// sleeping is a lease whose refused clients wait for an element of a list, once for each try; a release pushes one.
type sleeping struct {
	locks.Lock
	env locks.Env
}

func (l sleeping) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.Lock.Acquire(ctx, key, ttl)
	if !errors.Is(err, locks.ErrBusy) || l.env.Sites[0].BLPop(ctx, time.Second, key+":free").Err() != nil {
		return lease, err
	}
	return l.Lock.Acquire(ctx, key, ttl)
}

func (l sleeping) Release(ctx context.Context, lease locks.Lease) error {
	err := l.Lock.Release(ctx, lease)
	return errors.Join(err, l.env.Sites[0].RPush(ctx, lease.Key+":free", "1").Err())
}

// TestBlockingCommandsWait: a command that waits for another connection neither stops the others nor outlives its
// schedule.
func TestBlockingCommandsWait(t *testing.T) {
	spec := find(t, "lease")
	open := spec.Open
	spec.Open = func(e locks.Env) (locks.Lock, error) {
		l, err := open(e)
		return sleeping{l, e}, err
	}
	o := bounded(1)
	o.Visits = 1
	s, woken := newSearch(t, spec, o), false
	s.judged = func(*schedule, *checker.Verdict) bool { return false } // a client may wait for a lost element
	s.branch = func(n *node, run *schedule) []*node {
		if !run.merged && len(run.taken) == 0 {
			told, err := play(t, spec, &o, newKit(), nil, nil, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range told.w.trace.exchanges {
				woken = woken || strings.EqualFold(x.words[0], "blpop") && len(x.answer) == 2
			}
		}
		return n.children(run)
	}
	if err := s.levels(); err != nil {
		t.Fatal(err)
	}
	if l := s.report.Levels[1]; !woken || l.Schedules < 50 || l.Diverged+l.Cut > 0 {
		t.Errorf("woken: %t, %+v, want a waiter that is woken, and many schedules that end", woken, l)
	}
}

// TestAClosedConnectionIsNotSubscribed: a server forgets a subscriber whose connection was closed before, while or
// after it subscribed. Otherwise the server's goroutine would outlive the schedule, and the lock would be blamed.
func TestAClosedConnectionIsNotSubscribed(t *testing.T) {
	for _, order := range []string{"close, subscribe", "close, subscribe, close", "subscribe, close", "close alone"} {
		o := bounded(0)
		err := inBubble(t, func(t *testing.T) {
			s := newSchedule(newWorld(1, 1, newKit()), find(t, "fair"), &o)
			servers, err := s.w.kit.servers(1)
			if err != nil {
				t.Fatal(err)
			}
			link := &link{w: s.w, closed: true} // nobody reads the server's bytes
			end := servers[0].connect(link)
			for act := range strings.SplitSeq(order, ", ") {
				if act == "subscribe" {
					end.send(act, &frame{words: []string{act, "free"}}, false)
				} else {
					end.close()
				}
			}
			s.w.links.Wait()
		})
		if err != nil {
			t.Errorf("%s: %v", order, err)
		}
	}
}
