package catalogue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

// long is a lease that no test outlasts: an event that needs its end does not happen within live.Deadline.
const long = 10 * time.Minute

// stage is the environment of one attempt of a test. On a busy machine the process may pause, so that a lease ends
// too early. Such an attempt is undecided, and the next attempt has longer leases.
type stage struct {
	*bench
	briefly   time.Duration // a lease that ends during the attempt on purpose
	renewed   time.Duration // a lease that is renewed during the attempt
	undecided string        // why the attempt is undecided; empty = it is decided

	mu     sync.Mutex
	silent time.Duration // the longest time between two replies to watch
	last   time.Time
	ends   []func()
}

// played repeats an attempt until it is decided, each time with another key.
func played(t *testing.T, b *bench, name string, play func(home *stage, key string)) {
	t.Helper()
	briefly, renewed := 60*time.Millisecond, 400*time.Millisecond
	live.Again(t, func(n int) string {
		t.Helper()
		home := &stage{bench: b, briefly: briefly, renewed: renewed}
		defer func() {
			for _, end := range home.ends {
				end()
			}
		}()
		play(home, fmt.Sprint(name, n))
		briefly, renewed = 3*briefly, 3*renewed
		return home.undecided
	})
}

// late tells whether the time end may have passed. Then the attempt is undecided.
func (s *stage) late(end time.Time) bool {
	if time.Now().Before(end) {
		return false
	}
	s.undecided = "a lease, or the time for an answer, was over too early"
	return true
}

// unheard tells whether a call with a long lease, on many sites, may have stopped waiting for a slow site.
func (s *stage) unheard(call time.Time) bool { return s.late(call.Add(siteTimeout(long))) }

// unanswered tells whether the outcome of a call is unknown. Then the attempt is undecided.
func (s *stage) unanswered(err error) bool {
	outcome, _ := locks.Classify(err)
	if outcome == history.Unknown {
		s.undecided = fmt.Sprint("no answer in time: ", err)
	}
	return outcome == history.Unknown
}

func (s *stage) release(t *testing.T, l locks.Lock, held locks.Lease) {
	t.Helper()
	if err := l.Release(t.Context(), held); !s.unanswered(err) {
		must(t, err)
	}
}

// watch sends requests to the sites until the attempt ends, to measure how long they, or this process, pause.
func (s *stage) watch(t *testing.T, sites ...redis.UniversalClient) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	s.last = time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			for _, c := range sites {
				_ = c.Ping(ctx).Err() // an error is a reply too
			}
			s.beat()
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
	}()
	s.ends = append(s.ends, func() { stop(); <-ended })
}

func (s *stage) beat() (silent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	silent = max(s.silent, now.Sub(s.last))
	s.silent, s.last = silent, now
	return silent
}

// slow tells whether the watched sites, or this process, paused for longer than this. Then the attempt is undecided.
func (s *stage) slow(than time.Duration) bool {
	silent := s.beat()
	if silent <= than {
		return false
	}
	s.undecided = fmt.Sprintf("nothing was heard for %v, more than %v", silent, than)
	return true
}

// wakes tells whether a waiter is woken without an error within this time.
func wakes(t *testing.T, l locks.Lock, key string, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return (<-startWait(ctx, l, key)).err == nil
}

// told tells whether a holder knows that its hold is lost.
func told(l locks.Lease) bool {
	select {
	case <-l.Lost:
		return true
	default:
		return false
	}
}

func outlive(d time.Duration) { <-time.After(d) }
