package workload

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// leased is a lock with leases of a given length, or with a signal of the loss. Calls that are cancelled fail.
type leased struct {
	scripted
	lasts time.Duration
	lost  chan struct{}
}

func (l *leased) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := l.scripted.Acquire(ctx, key, ttl)
	lease.Until, lease.Lost = time.Now().Add(l.lasts), l.lost
	return lease, l.answer(ctx, err)
}

func (l *leased) Release(ctx context.Context, lease locks.Lease) error {
	return l.answer(ctx, l.scripted.Release(ctx, lease))
}

func (l *leased) answer(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(500 * time.Microsecond):
		return err
	}
}

func granting() scripted { return scripted{acquire: func(int) error { return nil }} }

// TestWhoHeedsADeadlineDoesNotStoreAfterIt: the holder still releases the lock.
func TestWhoHeedsADeadlineDoesNotStoreAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		heed    bool
		lasts   time.Duration
		renewed bool
		stores  bool
	}{
		"in time":                       {true, time.Hour, false, true},
		"late":                          {true, time.Millisecond, false, false},
		"late, and not heeding":         {false, time.Millisecond, false, true},
		"renewed, and never away":       {true, time.Millisecond, true, true},
		"in the last tenth of the term": {true, 50 * time.Millisecond, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leased{scripted: granting(), lasts: c.lasts}
				if c.renewed {
					l.lost = make(chan struct{})
				}
				plan := Shape{Workers: 1, Keys: 1, End: 20 * time.Millisecond, Hold: 2 * time.Millisecond,
					TTL: 10 * time.Second, HeedDeadline: c.heed}
				_, ops, _ := run(t, plan, func(int) locks.Lock { return l }, t.Context())
				stored, released := count(ops, history.Store, history.OK), count(ops, history.Release, history.OK)
				if (stored > 0) != c.stores || released == 0 {
					t.Errorf("%d stores, %d releases", stored, released)
				}
			})
		})
	}
}

// TestHoldsSpread: holds vary around the planned time, or are all equal without a spread.
func TestHoldsSpread(t *testing.T) {
	for spread, differ := range map[float64]bool{0: false, 0.2: true} {
		w := (&Workers{Shape: Shape{Workers: 1, Hold: time.Second, Spread: spread}, Lanes: make([]*history.Lane, 1),
			Locks: make([]locks.Lock, 1)}).worker(0, nil)
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			least, most = min(least, w.spread(w.shape.Hold)), max(most, w.spread(w.shape.Hold))
		}
		if (least < most) != differ || least < 800*time.Millisecond || most > 1200*time.Millisecond {
			t.Errorf("spread %v: holds from %v to %v", spread, least, most)
		}
	}
}

// TestEverySecondWorkerHurries: it comes before the others and gives up long before them.
func TestEverySecondWorkerHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := &scripted{acquire: func(int) error { return locks.ErrBusy }}
		plan := Shape{Workers: 2, Keys: 1, End: time.Minute, Visits: 1, Think: time.Second, Wait: 10 * time.Second,
			Hurry: 2 * time.Second, Retry: time.Millisecond}
		_, ops, _ := run(t, plan, busy.open, t.Context())
		gone := map[int32]time.Duration{}
		for _, op := range ops {
			if op.Kind == history.End {
				gone[op.Worker] = op.Return.Round(time.Second / 2)
			}
		}
		if gone[1] != 3*time.Second || gone[0] != 12*time.Second {
			t.Errorf("they gave up at %v", gone)
		}
	})
}

// TestAVisitStaysAsOftenAsItExtends: it waits once for each extension of its lease.
func TestAVisitStaysAsOftenAsItExtends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := granting()
		plan := Shape{
			Workers: 1, Keys: 1, End: history.Forever, Visits: 2, Hold: time.Millisecond,
			Extend: time.Minute, Extensions: 3,
		}
		_, ops, _ := run(t, plan, s.open, t.Context())
		extended, stored := count(ops, history.Extend, history.OK), count(ops, history.Store, history.OK)
		if stored == 0 || extended != 3*stored {
			t.Errorf("%d extensions in %d visits", extended, stored)
		}
	})
}

// TestVisitsAreCalledOff at any moment: some acquires and releases get no reply, but the counter's calls do.
func TestVisitsAreCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for every, off := range map[int]bool{0: false, 2: true} {
			l := &leased{scripted: granting(), lasts: time.Hour}
			plan := Shape{Workers: 8, Keys: 8, End: history.Forever, Visits: 100, CancelOneIn: every}
			_, ops, _ := run(t, plan, func(int) locks.Lock { return l }, t.Context())
			acquires, releases := count(ops, history.Acquire, history.Unknown),
				count(ops, history.Release, history.Unknown)
			if (acquires > 0) != off || (releases > 0) != off || count(ops, history.Store, history.OK) == 0 {
				t.Errorf("one in %d called off: %d acquires and %d releases without an answer", every,
					acquires, releases)
			}
			if n := count(ops, history.Load, history.Unknown) + count(ops, history.Store, history.Unknown); n > 0 {
				t.Errorf("one in %d called off: %d loads and stores without an answer", every, n)
			}
		}
	})
}

// TestARefusedWorkerCanBeCaught: it dies without a hold.
func TestARefusedWorkerCanBeCaught(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate()
		s := &scripted{acquire: func(int) error { return locks.ErrBusy }}
		plan := Shape{
			Workers: 1, Keys: 1, End: 200 * time.Millisecond, Wait: 100 * time.Millisecond, Retry: time.Millisecond,
		}
		go func() {
			if c, err := gate.Catch(t.Context(), Refused, AnyKey); err == nil {
				c.Die()
			}
		}()
		_, ops, _ := runWith(t, plan, s.open, t.Context(), func(c *Workers) {
			c.Gate, c.Reopen = gate, func(int) (locks.Lock, error) { return s, nil }
		})
		if count(ops, history.Crash, history.OK) != 1 || len(s.released) > 0 {
			t.Errorf("%d crashes, released %v", count(ops, history.Crash, history.OK), s.released)
		}
	})
}

// TestEverySecondWorkerAsksForLongerLeases if TwoTTLs is set.
func TestEverySecondWorkerAsksForLongerLeases(t *testing.T) {
	for uneven, want := range map[bool]time.Duration{false: time.Second, true: 2 * time.Second} {
		plan := Shape{Workers: 2, Keys: 1, End: history.Forever, Visits: 2, TTL: time.Second, TwoTTLs: uneven, First: 4}
		_, ops, _ := run(t, plan, catalogued(t, "local"), t.Context())
		for _, op := range ops {
			if op.Kind == history.Acquire && op.TTL != map[int32]time.Duration{0: time.Second, 1: want}[op.Worker] {
				t.Errorf("uneven %v: worker %d asks for %v", uneven, op.Worker, op.TTL)
			}
		}
	}
}

// TestALeaderCountsAgainAndAgain: a leader counts repeatedly during its term. If its term is cut short, its earlier
// counts remain valid. Each worker always visits the same page.
func TestALeaderCountsAgainAndAgain(t *testing.T) {
	for name, c := range map[string]struct {
		term, lose, end time.Duration
		stores          int64
	}{
		"once":               {0, time.Hour, history.Forever, 1},
		"a term":             {time.Second, time.Hour, history.Forever, 10},
		"it is deposed":      {time.Second, 350 * time.Millisecond, history.Forever, 3},
		"the run ends first": {time.Second, time.Hour, 410 * time.Millisecond, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost := make(chan struct{})
				deposes := time.AfterFunc(c.lose, func() { close(lost) })
				defer deposes.Stop()
				l := &leased{scripted: granting(), lasts: time.Hour, lost: lost}
				plan := Shape{Workers: 1, First: 7, Keys: 5, Faithful: true, Visits: 1, Hold: 100 * time.Millisecond,
					Term: c.term, StopAtEnd: true, End: c.end}
				_, ops, counter := run(t, plan, func(int) locks.Lock { return l }, t.Context())
				views, err := counter.Load(t.Context(), Pages("test:", 5, false)[2].Views)
				if err != nil || views.Views != c.stores || count(ops, history.Store, history.OK) != c.stores {
					t.Errorf("%d page views (%v), %d stores, want %d of the third page", views.Views, err,
						count(ops, history.Store, history.OK), c.stores)
				}
				if count(ops, history.Acquire, history.OK) != 1 || count(ops, history.Release, history.OK) != 1 ||
					count(ops, history.End, history.OK) != 1 {
					t.Error("it is no term of one hold that has counted")
				}
			})
		})
	}
}

// TestVariedExtensions: extensions come early and late, to shorter and longer leases. The holder stays until
// the last lease.
func TestVariedExtensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leased{scripted: granting(), lasts: time.Hour}
		plan := Shape{Workers: 1, Keys: 1, End: time.Minute, TTL: time.Second, Varied: true}
		_, ops, _ := run(t, plan, func(int) locks.Lock { return l }, t.Context())
		var granted, extended time.Duration
		after, to, stays := map[time.Duration]bool{}, map[time.Duration]bool{}, 0
		for _, op := range ops {
			switch op.Kind {
			case history.Acquire:
				granted = op.Return
			case history.Extend:
				after[(op.Call-granted).Round(50*time.Millisecond)], to[op.TTL], extended = true, true, op.Call
			case history.Release:
				if op.Call-extended >= 400*time.Millisecond {
					stays++
				}
			}
		}
		if len(after) != len(extendsAfter) || !to[time.Second/2] || !to[3*time.Second] || stays < 20 {
			t.Errorf("extended after %v, to %v; %d stayed", after, to, stays)
		}
	})
}

// TestWhoIsUnsureOfALeaseGivesItBack: an extension without a reply may have made the lease shorter.
func TestWhoIsUnsureOfALeaseGivesItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &leased{scripted: granting(), lasts: time.Hour}
		l.extend = func() error { return errors.New("no answer") }
		plan := Shape{Workers: 1, Keys: 1, End: time.Minute, TTL: time.Second, Varied: true}
		_, ops, _ := run(t, plan, func(int) locks.Lock { return l }, t.Context())
		var extended time.Duration
		for _, op := range ops {
			switch {
			case op.Kind == history.Store:
				t.Fatal("it stored")
			case op.Kind == history.Extend:
				extended = op.Return
			case op.Kind == history.Release && op.Call != extended:
				t.Fatalf("it held on for %v", op.Call-extended)
			}
		}
		if count(ops, history.Release, history.OK) < 20 {
			t.Error("it gave back too little to tell")
		}
	})
}
