package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/locks/catalogue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run lets workers visit with the given lock and returns their history. If time matters, the test is a synctest
// bubble: its time advances only in holds and waits.
func run(t *testing.T, plan Shape, open func(worker int) locks.Lock, stop context.Context) (*Due,
	[]history.Op, Counter) {
	t.Helper()
	return runWith(t, plan, open, stop, func(*Workers) {})
}

// runWith changes the workers before they begin.
func runWith(t *testing.T, plan Shape, open func(worker int) locks.Lock, stop context.Context,
	change func(*Workers)) (*Due, []history.Op, Counter) {
	t.Helper()
	if plan.Wait == 0 {
		plan.Wait = 10 * time.Second
	}
	if plan.TTL == 0 {
		plan.TTL = time.Second
	}
	wake := make(chan struct{}, 1)
	clock := history.NewClock(0)
	crew := Workers{
		Shape: plan, Judged: true, Clock: clock, Counter: newMemoryCounter(), Pages: Pages("test:", plan.Keys, false),
	}
	change(&crew)
	clock = crew.Clock
	for i := range plan.Workers * Lanes(&crew.Claims) {
		crew.Lanes = append(crew.Lanes, history.NewLane(clock, i, int32(i), 1<<12, wake))
	}
	for i := range plan.Workers {
		crew.Locks = append(crew.Locks, open(i))
	}
	var ops []history.Op
	merge := history.NewMerge(clock, crew.Lanes)
	keep := func(op *history.Op) { ops = append(ops, *op) }
	done, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-done:
				return
			case <-wake:
				merge.Drain(keep)
			}
		}
	}()
	due := crew.Run(t.Context(), stop)
	close(done)
	<-drained
	merge.Flush(keep)
	return &due, ops, crew.Counter
}

func catalogued(t *testing.T, name string) func(int) locks.Lock {
	t.Helper()
	spec, ok := catalogue.Find(name)
	if !ok {
		t.Fatalf("no lock %s", name)
	}
	env := locks.Env{Process: &locks.Process{}}
	return func(int) locks.Lock {
		l, err := spec.Open(env)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func count(ops []history.Op, kind history.Kind, outcome history.Outcome) (n int64) {
	for _, op := range ops {
		if op.Kind == kind && op.Outcome == outcome {
			n++
		}
	}
	return n
}

func TestALockedCounterCountsEveryVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{
			Workers: 8, Keys: 2, End: 20 * time.Millisecond, Hold: 50 * time.Microsecond, Retry: 100 * time.Microsecond,
		}
		due, ops, counter := run(t, plan, catalogued(t, "local"), t.Context())
		done := count(ops, history.End, history.OK)
		if done == 0 || done != due.Begun {
			t.Errorf("%d of %d visits were counted", done, due.Begun)
		}
		var views int64
		for _, p := range Pages("test:", plan.Keys, false) {
			c, err := counter.Load(t.Context(), p.Views)
			if err != nil {
				t.Fatal(err)
			}
			views += c.Views
		}
		if views != done {
			t.Errorf("%d page views, %d visits", views, done)
		}
	})
}

func TestWithoutALockPageViewsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{Workers: 8, Keys: 1, End: 100 * time.Millisecond, Hold: time.Millisecond}
		_, ops, counter := run(t, plan, catalogued(t, "none"), t.Context())
		done := count(ops, history.End, history.OK)
		c, err := counter.Load(t.Context(), Pages("test:", 1, false)[0].Views)
		if err != nil || c.Views >= done {
			t.Errorf("%d page views of %d visits, %v", c.Views, done, err)
		}
	})
}

// TestEveryStoreNamesItsWriterAndWhatItSaw follows the chain of stores back to the empty counter.
func TestEveryStoreNamesItsWriterAndWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{
			Workers: 4, Keys: 1, End: 10 * time.Millisecond, Hold: 50 * time.Microsecond, Retry: 100 * time.Microsecond,
		}
		_, ops, counter := run(t, plan, catalogued(t, "local"), t.Context())
		stores := map[history.ID]history.Op{}
		for _, op := range ops {
			if op.Kind == history.Store {
				stores[op.ID] = op
			}
		}
		last, err := counter.Load(t.Context(), Pages("test:", 1, false)[0].Views)
		if err != nil {
			t.Fatal(err)
		}
		length, at := int64(0), last.Writer
		for at != 0 {
			op, ok := stores[at]
			if !ok {
				t.Fatalf("store %s is not in the history", at)
			}
			if op.Value != last.Views-length {
				t.Fatalf("store %s wrote %d, want %d", at, op.Value, last.Views-length)
			}
			at = op.Seen
			length++
		}
		if length != int64(len(stores)) || length != last.Views {
			t.Errorf("a chain of %d stores, %d in the history, %d page views", length, len(stores), last.Views)
		}
	})
}

type arrival struct {
	due time.Duration
	key int32
}

func schedule(p Shape) (all []arrival) {
	for a := newArrivals(&p, nil); ; {
		v, ok := a.take()
		if !ok {
			return all
		}
		all = append(all, arrival{v.planned, v.key})
	}
}

// dull is a counter of which every third load fails.
type dull struct {
	Counter
	loads, failed atomic.Int64
}

func (d *dull) Load(ctx context.Context, page string) (Count, error) {
	if d.loads.Add(1)%3 == 0 {
		d.failed.Add(1)
		return Count{}, io.ErrUnexpectedEOF
	}
	return d.Counter.Load(ctx, page)
}

type named struct{ locks.Lock }

func (n named) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease, err := n.Lock.Acquire(ctx, key, ttl)
	lease.Token = "token"
	return lease, err
}

// parts splits visits that were recorded in one operation.
func parts(ops []history.Op) (all []history.Op) {
	for _, op := range ops {
		if op.Kind != history.Visit {
			all = append(all, op)
			continue
		}
		for _, kind := range history.PartsOfVisit {
			var part history.Op
			all = append(all, *op.Part(kind, &part))
		}
	}
	return all
}

// TestWhereNobodyJudgesGoodLoadsAreSilent compares a history that is recorded for checkers with one that is only
// recorded for measurements. They differ only in successful loads and in the hashes of tokens.
func TestWhereNobodyJudgesGoodLoadsAreSilent(t *testing.T) {
	for _, judged := range []bool{true, false} {
		t.Run(fmt.Sprintf("judged=%v", judged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counter := &dull{Counter: newMemoryCounter()}
				plan := Shape{Workers: 4, Keys: 3, End: 20 * time.Millisecond, Hold: 50 * time.Microsecond,
					Retry: 100 * time.Microsecond}
				local := catalogued(t, "local")
				due, ops, _ := runWith(t, plan, func(i int) locks.Lock {
					return named{local(i)}
				}, t.Context(), func(c *Workers) { c.Judged, c.Counter = judged, counter })
				good, bad := counter.loads.Load()-counter.failed.Load(), counter.failed.Load()
				if n := count(ops, history.Visit, history.OK); judged && n != 0 || !judged && n != good {
					t.Errorf("%d of %d visits were told in one", n, good)
				}
				ops = parts(ops)
				if bad == 0 || good == 0 || due.Begun != good+bad {
					t.Fatalf("%d visits, %d good loads, %d bad ones", due.Begun, good, bad)
				}
				if !judged {
					if n := count(ops, history.Load, history.OK); n != 0 {
						t.Errorf("%d loads that went well were recorded", n)
					}
				} else if n := count(ops, history.Load, history.OK); n != good {
					t.Errorf("%d of %d loads that went well were recorded", n, good)
				}
				for kind, want := range map[history.Kind]int64{history.Acquire: good + bad, history.Store: good,
					history.Release: good + bad, history.End: good} {
					if n := count(ops, kind, history.OK); n != want {
						t.Errorf("%d of %d were recorded: %v", n, want, kind)
					}
				}
				var failed int64
				last := map[int32]time.Duration{}
				for _, op := range ops {
					if op.Kind == history.Load && op.Outcome == history.Unknown && op.Reason == history.Dropped {
						failed++
					}
					if op.Token != 0 != (judged && (op.Kind == history.Acquire || op.Kind == history.Release)) {
						t.Fatalf("token %x of %v", op.Token, op.Kind)
					}
					if op.Call > op.Return || op.Kind != history.End && op.Call < last[op.Worker] {
						t.Fatalf("%v from %v to %v, the one before returned at %v", op.Kind, op.Call, op.Return,
							last[op.Worker])
					}
					last[op.Worker] = op.Return
				}
				if failed != bad {
					t.Errorf("%d of %d failed loads were recorded", failed, bad)
				}
			})
		})
	}
}

func TestSameSeedSameSchedule(t *testing.T) {
	for _, arrivals := range AllArrivals {
		for _, popularity := range AllPopularities {
			p := Shape{
				Workers: 1, Keys: 50, Popularity: popularity, Rate: 1000, Arrivals: arrivals,
				End: 10 * time.Second, Seed: 7,
			}
			a := schedule(p)
			p.Workers = 64
			if b := schedule(p); !slices.Equal(a, b) {
				t.Errorf("%s %s: the same seed gave another schedule", arrivals, popularity)
			}
			p.Seed = 8
			if b := schedule(p); slices.Equal(a, b) {
				t.Errorf("%s %s: another seed gave the same schedule", arrivals, popularity)
			}
			if n := len(a); n < 9500 || n > 10500 {
				t.Errorf("%s %s: %d visits in 10 s at 1000/s", arrivals, popularity, n)
			}
		}
	}
}

func TestZipfPrefersTheFirstPages(t *testing.T) {
	p := Shape{Keys: 100, Popularity: Zipf, Rate: 10_000, Arrivals: Uniform, End: 10 * time.Second, Seed: 1}
	hits := make([]int, p.Keys)
	for _, a := range schedule(p) {
		hits[a.key]++
	}
	if ratio := float64(hits[0]) / float64(hits[9]); ratio < 7 || ratio > 14 {
		t.Errorf("the first page was visited %.1f times as often as the tenth, want about 10", ratio)
	}
}

// scripted is a lock that answers as the test says.
type scripted struct {
	mu       sync.Mutex
	acquire  func(try int) error
	extend   func() error // nil = it succeeds
	tries    int
	released []string
}

func (s *scripted) Acquire(_ context.Context, key string, _ time.Duration) (locks.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	return locks.Lease{Key: key, Token: "t" + strconv.Itoa(s.tries)}, s.acquire(s.tries)
}

func (s *scripted) Extend(_ context.Context, l locks.Lease, ttl time.Duration) (locks.Lease, error) {
	if s.extend != nil {
		return l, s.extend()
	}
	l.Until = time.Now().Add(ttl)
	return l, nil
}

func (s *scripted) Release(_ context.Context, l locks.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = append(s.released, l.Token)
	return nil
}

func (s *scripted) Close() error { return nil }

func (s *scripted) open(int) locks.Lock { return s }

func TestAVisitGivesUpWhenItsPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{acquire: func(int) error { return locks.ErrBusy }}
		plan := Shape{
			Workers: 2, Keys: 1, End: 10 * time.Millisecond, Wait: 60 * time.Millisecond, Retry: time.Millisecond,
		}
		_, ops, _ := run(t, plan, s.open, t.Context())
		for _, op := range ops {
			if op.Kind != history.End {
				continue
			}
			if waited := op.Return - op.Due; op.Outcome != history.Failed || op.Reason != history.Impatient ||
				waited < plan.Wait || waited > plan.Wait+2*plan.Retry {
				t.Errorf("visit ended %s %s after %v", op.Outcome, op.Reason, waited)
			}
		}
		if n := count(ops, history.End, history.Failed); n != 2 {
			t.Errorf("%d visits ended, want 2", n)
		}
	})
}

// TestAVisitExtendsItsLease: a holder that is told that the lock is lost stores nothing.
func TestAVisitExtendsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := Shape{Workers: 1, Keys: 1, End: 20 * time.Millisecond, Think: time.Millisecond, Retry: time.Millisecond,
			Extend: time.Minute}
		for name, c := range map[string]struct {
			err  error
			want []string // from the first load on
		}{
			"extended": {nil, []string{"load ok", "extend ok", "store ok", "release ok"}},
			"lost":     {locks.ErrLost, []string{"load ok", "extend failed", "lose ok", "release ok"}},
			"unknown":  {io.EOF, []string{"load ok", "extend unknown", "store ok", "release ok"}},
		} {
			s := &scripted{acquire: func(int) error { return nil }}
			if c.err != nil {
				s.extend = func() error { return c.err }
			}
			_, ops, _ := run(t, plan, s.open, t.Context())
			var got []string
			for _, op := range ops[1:5] {
				got = append(got, op.Kind.String()+" "+op.Outcome.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, want %v", name, got, c.want)
			}
			if op := ops[2]; op.TTL != time.Minute || op.Hold != ops[0].ID || (op.Until > 0) != (c.err == nil) {
				t.Errorf("%s: ttl %s of %s, believed until %s", name, op.TTL, op.Hold, op.Until)
			}
		}
	})
}

// TestAnUnknownAcquireIsUndone loses the reply to a grant: nothing else would release the lock.
func TestAnUnknownAcquireIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{acquire: func(try int) error {
			if try == 1 {
				return io.EOF
			}
			return nil
		}}
		plan := Shape{Workers: 1, Keys: 1, End: 20 * time.Millisecond, Think: time.Millisecond, Retry: time.Millisecond}
		_, ops, _ := run(t, plan, s.open, t.Context())
		if len(s.released) < 2 || s.released[0] != "t1" || s.released[1] != "t2" {
			t.Errorf("released %v", s.released)
		}
		var first []string
		for _, op := range ops[:3] {
			first = append(first, op.Kind.String()+" "+op.Outcome.String())
		}
		if want := []string{"acquire unknown", "release ok", "acquire ok"}; !slices.Equal(first, want) {
			t.Errorf("got %v, want %v", first, want)
		}
		if ops[1].Hold != ops[0].ID || ops[1].Token != history.Hash("t1") {
			t.Errorf("the release belongs to %s with token %x", ops[1].Hold, ops[1].Token)
		}
	})
}

// TestNoVisitIsDroppedSilently overloads an open loop.
func TestNoVisitIsDroppedSilently(t *testing.T) {
	for name, plan := range map[string]Shape{
		"patient":   {Wait: 10 * time.Second},
		"impatient": {Wait: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plan.Workers, plan.Keys, plan.Rate, plan.Arrivals = 3, 3, 2000, Poisson
				plan.End, plan.Hold, plan.Retry, plan.Seed = 200*time.Millisecond, 5*time.Millisecond,
					time.Millisecond, 3
				due, ops, _ := run(t, plan, catalogued(t, "local"), t.Context())
				want := int64(len(schedule(plan)))
				var last time.Duration
				left := due.Unfinished(func(d time.Duration) { last = d })
				if got := due.Begun + due.Skipped + left; got != want {
					t.Errorf("%d begun + %d skipped + %d unfinished = %d, want %d due", due.Begun, due.Skipped,
						left, got, want)
				}
				if left > 0 && last >= plan.End {
					t.Errorf("a visit due at %v was counted as left over, the end was at %v", last, plan.End)
				}
				if name == "impatient" && due.Skipped == 0 {
					t.Error("nobody ran out of patience")
				}
				if skipped := count(ops, history.Skip, history.Failed); skipped != due.Skipped {
					t.Errorf("%d skipped, %d in the history", due.Skipped, skipped)
				}
				if ended := count(ops, history.End, history.OK) +
					count(ops, history.End, history.Failed); ended != due.Begun {
					t.Errorf("%d begun, %d ended", due.Begun, ended)
				}
			})
		})
	}
}

// TestStopFinishesVisitsInHand stops the run while visits hold the lock.
func TestStopFinishesVisitsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, 500} {
			stop, cancel := context.WithCancel(t.Context())
			inside := make(chan struct{}, 1)
			s := &scripted{acquire: func(try int) error {
				if try == 3 {
					inside <- struct{}{}
				}
				return nil
			}}
			go func() { <-inside; cancel() }()
			plan := Shape{Workers: 4, Keys: 1, End: time.Hour, Hold: 20 * time.Millisecond, Rate: rate,
				Arrivals: Uniform}
			due, ops, _ := run(t, plan, s.open, stop)
			if done := count(ops, history.End, history.OK); done != due.Begun || done < 3 {
				t.Errorf("rate %v: %d of %d visits were finished", rate, done, due.Begun)
			}
		}
	})
}

// TestAbortGivesLocksBack aborts a run while visits hold the lock.
func TestAbortGivesLocksBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{acquire: func(int) error { return nil }}
		plan := Shape{Workers: 2, Keys: 1, Hold: time.Hour, End: time.Hour, Wait: time.Hour, TTL: time.Hour}
		clock := history.NewClock(0)
		crew := Workers{Shape: plan, Clock: clock, Counter: newMemoryCounter(), Pages: Pages("", 1, false)}
		for i := range plan.Workers {
			crew.Lanes = append(crew.Lanes, history.NewLane(clock, i, int32(i), 64, nil))
			crew.Locks = append(crew.Locks, s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		crew.Run(ctx, ctx)
		if len(s.released) != 2 {
			t.Errorf("%d of 2 holds were given back", len(s.released))
		}
	})
}

func TestCountsAreReadAsTheyWereWritten(t *testing.T) {
	for text, want := range map[string]Count{"1 2": {1, 2, 0}, "-3 18446744073709551615": {-3, 1<<64 - 1, 0},
		"1 2 3": {1, 2, 3}} {
		if got, err := parseCount(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "x 1", "1 x", "1 2 3 4", "1 2 ", "1 -2"} {
		if got, err := parseCount(text); err == nil {
			t.Errorf("%q: got %v", text, got)
		} else if errors.Unwrap(err) == nil {
			t.Errorf("%q: the error hides its cause: %v", text, err)
		}
	}
}

// clumsy is a lock of which every third release fails.
type clumsy struct {
	locks.Lock
	releases, failed *atomic.Int64
}

func (c clumsy) Release(ctx context.Context, l locks.Lease) error {
	err := c.Lock.Release(ctx, l)
	if c.releases.Add(1)%3 == 0 {
		c.failed.Add(1)
		return io.ErrUnexpectedEOF
	}
	return err
}

// TestWhereNobodyJudgesAVisitIsToldInOne lets some visits succeed, some fail at their load, and some fail
// at their release.
func TestWhereNobodyJudgesAVisitIsToldInOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var releases, failed atomic.Int64
		counter := &dull{Counter: newMemoryCounter()}
		local := catalogued(t, "local")
		plan := Shape{
			Workers: 4, Keys: 3, End: 20 * time.Millisecond, Hold: 50 * time.Microsecond, Retry: 100 * time.Microsecond,
		}
		due, ops, _ := runWith(t, plan, func(i int) locks.Lock {
			return clumsy{local(i), &releases, &failed}
		}, t.Context(),
			func(c *Workers) { c.Judged, c.Counter = false, counter })
		unread := counter.failed.Load()
		visits, stores := count(ops, history.Visit, history.OK), count(ops, history.Store, history.OK)
		lost, empty := count(ops, history.Release, history.Unknown), count(ops, history.Release, history.OK)
		if visits == 0 || stores == 0 || unread == 0 {
			t.Fatalf("%d visits went well, %d stored and could not release, %d could not load", visits, stores, unread)
		}
		if lost != failed.Load() || lost+empty != stores+unread || visits+stores+unread != due.Begun {
			t.Errorf("%d visits: %d told in one, %d stores, %d failed loads, %d releases failed (%d told), %d others",
				due.Begun, visits, stores, unread, failed.Load(), lost, empty)
		}
		if n, m := count(ops, history.End, history.OK), count(ops, history.End, history.Failed); n != stores ||
			m != unread {
			t.Errorf("%d good and %d bad ends, want %d and %d", n, m, stores, unread)
		}
		last := map[int32]history.Op{}
		for _, op := range ops {
			before := last[op.Worker]
			switch {
			case op.Kind == history.End:
				continue
			case op.Call < before.Return || op.Return < op.Call:
				t.Fatalf("%v from %v to %v, the one before returned at %v", op.Kind, op.Call, op.Return, before.Return)
			case op.Kind == history.Visit && (op.Released < op.Call || op.Return < op.Released ||
				op.Began > before.Call || op.Until > op.Began):
				t.Fatalf("stored from %v, released from %v to %v, was free at %v, began at %v, tried at %v",
					op.Call, op.Released, op.Return, op.Until, op.Began, before.Call)
			case (op.Kind == history.Visit || op.Kind == history.Release) && op.Hold != before.Hold:
				t.Fatalf("%v of hold %v after %v of %v", op.Kind, op.Hold, before.Kind, before.Hold)
			}
			last[op.Worker] = op
		}
	})
}

// TestBareNamesAreAsPeopleWriteThem: some names begin with others, some have a hash tag, some have odd bytes; all
// differ.
func TestBareNamesAreAsPeopleWriteThem(t *testing.T) {
	pages, seen := Pages("test:", 50, true), map[string]bool{}
	var begun, tagged, odd int
	for _, p := range pages {
		if seen[p.Lock] || !utf8.ValidString(p.Lock) {
			t.Errorf("a name twice, or no text: %q", p.Lock)
		}
		seen[p.Lock] = true
		for _, other := range pages {
			if other != p && strings.HasPrefix(other.Lock, p.Lock) {
				begun++
			}
		}
		if strings.Contains(p.Lock, "{") {
			tagged++
		}
		if strings.ContainsAny(p.Lock, " *") && len(p.Lock) > 140 {
			odd++
		}
	}
	if begun == 0 || tagged != 10 || odd != 10 {
		t.Errorf("%d begin others, %d have a tag, %d are odd", begun, tagged, odd)
	}
}
