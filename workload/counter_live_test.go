package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/testbed"
	"hammerlock/locks"
	"hammerlock/topologies"
)

func server(t *testing.T) redis.UniversalClient {
	t.Helper()
	client := testbed.Up(t, "single", topologies.Options{}).Sites[0].Client(topologies.ClientOptions{})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// onEveryCounter runs a test on every counter, each without pages.
func onEveryCounter(t *testing.T, test func(t *testing.T, s CounterSpec, c Counter)) {
	client := server(t)
	for _, s := range AllCounters {
		t.Run(s.Name, func(t *testing.T) {
			c, err := s.Open(CounterEnv{Client: client, File: filepath.Join(t.TempDir(), "counter")})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { // also if the test is skipped
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			test(t, s, c)
		})
	}
}

func load(t *testing.T, c Counter, page string) Count {
	t.Helper()
	count, err := c.Load(t.Context(), page)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestLiveEveryStoreKeepsWhatItTook(t *testing.T) {
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		if got := load(t, c, s.Name); got != (Count{}) {
			t.Errorf("an unwritten page has %+v", got)
		}
		for i, want := range []Count{{1, 7, 3}, {2, 1<<64 - 1, 5}} {
			if err := c.Store(t.Context(), s.Name, want); err != nil {
				t.Fatal(err)
			}
			got := load(t, c, s.Name)
			if got.Fence = want.Fence; got != want {
				t.Errorf("store %d: got %+v, want %+v", i, got, want)
			}
		}
		if got := load(t, c, "another page"); got != (Count{}) {
			t.Errorf("another page has %+v", got)
		}
		if all, ok := c.(Lister); ok {
			got, err := all.LoadAll(t.Context(), []string{"another page", s.Name})
			if err != nil || len(got) != 2 || got[0] != (Count{}) || got[1] != load(t, c, s.Name) {
				t.Errorf("both pages at once have %+v, %v", got, err)
			}
		}
	})
}

// TestLiveOnlyAFencedStoreRefusesStaleTokens lets a holder store after two later grants.
func TestLiveOnlyAFencedStoreRefusesStaleTokens(t *testing.T) {
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		newest := Count{Views: 2, Writer: 2, Fence: 9}
		if err := errors.Join(c.Store(t.Context(), s.Name, Count{1, 1, 4}),
			c.Store(t.Context(), s.Name, newest)); err != nil {
			t.Fatal(err)
		}
		fences := s.Fenced && s.Broken == ""
		for _, fence := range []int64{8, 9, 0} {
			err := c.Store(t.Context(), s.Name, Count{Views: 2, Writer: 3, Fence: fence})
			outcome, reason := locks.Classify(err)
			if fences && (outcome != history.Failed || reason != history.Fenced) || !fences && err != nil {
				t.Errorf("token %d after 9: got %s %s, %v", fence, outcome, reason, err)
			}
		}
		if got := load(t, c, s.Name); (got.Writer == newest.Writer) != fences {
			t.Errorf("the page has %+v", got)
		}
		if err := c.Store(t.Context(), s.Name, Count{Views: 3, Writer: 4, Fence: 10}); err != nil {
			t.Errorf("token 10 after 9: %v", err)
		}
	})
}

// TestLiveALoadShowsItsToken lets a late holder store between the load and the store of the next holder. The
// counter must reject this store, because the next holder would overwrite it.
func TestLiveALoadShowsItsToken(t *testing.T) {
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		shown, ok := c.(Shown)
		if fences := s.Fenced && s.Broken == ""; ok != fences {
			t.Fatalf("shows tokens: %v, want %v", ok, fences)
		}
		if !ok {
			t.Skip("no fence")
		}
		for i, late := range []int64{3, 7} { // on a page that was never written, and on another one
			next, views := late+1, int64(i)
			if _, err := shown.LoadFor(t.Context(), s.Name, late); err != nil {
				t.Fatal(err)
			}
			if got, err := shown.LoadFor(t.Context(), s.Name, next); err != nil || got.Views != views {
				t.Errorf("got %+v, %v, want %d views", got, err, views)
			}
			if err := c.Store(t.Context(), s.Name, Count{Views: views + 1, Writer: 1, Fence: late}); !errors.Is(err,
				locks.ErrFenced) {
				t.Errorf("a store that the next holder has not seen: %v", err)
			}
			if _, err := shown.LoadFor(t.Context(), s.Name, late); !errors.Is(err, locks.ErrFenced) {
				t.Errorf("a late load: %v", err)
			}
			if err := c.Store(t.Context(), s.Name, Count{Views: views + 1, Writer: 2, Fence: next}); err != nil {
				t.Error(err)
			}
			if _, err := shown.LoadFor(t.Context(), s.Name, next); !errors.Is(err, locks.ErrFenced) {
				t.Errorf("another hold with the same token: %v", err)
			}
		}
	})
}

// TestLiveAFenceComparesAndWritesInOneStep lets many workers store together. In any order, the greatest token must
// win and must never be refused.
func TestLiveAFenceComparesAndWritesInOneStep(t *testing.T) {
	const tokens = 200
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		if !s.Fenced || s.Broken != "" {
			return
		}
		order := rand.New(rand.NewPCG(1, 1)).Perm(tokens)
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := w; i < tokens; i += 8 {
					fence := int64(order[i] + 1)
					err := c.Store(t.Context(), s.Name, Count{Views: fence, Writer: history.ID(fence), Fence: fence})
					if err != nil && (fence == tokens || !errors.Is(err, locks.ErrFenced)) {
						t.Errorf("token %d: %v", fence, err)
					}
				}
			})
		}
		wg.Wait()
		if got := load(t, c, s.Name); got.Views != tokens {
			t.Errorf("token %d won, want %d", got.Views, tokens)
		}
	})
}

// TestLiveAddingLosesNothing follows which add replaced which: this must be a chain through all of them.
func TestLiveAddingLosesNothing(t *testing.T) {
	const adders, each = 8, 40
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		atomic, ok := c.(Atomic)
		if !ok || s.Fenced {
			return
		}
		var mu sync.Mutex
		by := map[history.ID]Count{} // replaced count, by its writer
		var wg sync.WaitGroup
		for w := range adders {
			wg.Go(func() {
				for i := range each {
					writer := history.ID(w*each + i + 1)
					old, err := atomic.Add(t.Context(), s.Name, writer)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					by[writer] = old
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		at := load(t, c, s.Name)
		for left := int64(adders * each); left > 0; left-- {
			if at.Views != left {
				t.Fatalf("%s wrote %d, want %d", at.Writer, at.Views, left)
			}
			at = by[at.Writer]
		}
		if at != (Count{}) {
			t.Errorf("the first one replaced %+v", at)
		}
	})
}

// TestLiveATransactionHeedsWhoCameBetween stores during a transaction, on a new page and on an old one.
func TestLiveATransactionHeedsWhoCameBetween(t *testing.T) {
	onEveryCounter(t, func(t *testing.T, s CounterSpec, c Counter) {
		atomic, ok := c.(Atomic)
		if !ok || s.Fenced {
			return
		}
		for i, disturbed := range []bool{true, true, false} {
			before := load(t, c, s.Name)
			between := Count{Views: before.Views + 1, Writer: history.ID(10 + i)}
			mine := Count{Views: before.Views + 1, Writer: history.ID(20 + i)}
			var stored error
			err := atomic.Transact(t.Context(), s.Name, func(seen Count, store func(Count) error) error {
				if seen != before {
					t.Errorf("has seen %+v, want %+v", seen, before)
				}
				if disturbed {
					if err := c.Store(context.WithoutCancel(t.Context()), s.Name, between); err != nil {
						t.Fatal(err)
					}
				}
				stored = store(mine)
				return nil
			})
			want := mine
			if disturbed {
				want = between
			}
			if errors.Is(stored, locks.ErrConflict) != disturbed || err != nil || !disturbed && stored != nil {
				t.Errorf("disturbed %v: got %v, %v", disturbed, stored, err)
			}
			if got := load(t, c, s.Name); got != want {
				t.Errorf("disturbed %v: the page has %+v, want %+v", disturbed, got, want)
			}
		}
	})
}
