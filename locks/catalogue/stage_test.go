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

// long is a lease whose end no test waits for: what comes with its end only does not come within live.Deadline.
const long = 10 * time.Minute

// stage is where a test is played. On a busy machine processes stand still for a while at any moment: then a lease can
// end before something is done within it, and the play says nothing. It is undecided, and played again with longer
// leases.
type stage struct {
	*bench
	briefly   time.Duration // a lease that the play outlives on purpose
	renewed   time.Duration // one that is to be renewed meanwhile
	undecided string        // why; empty = the play is decided

	mu     sync.Mutex
	silent time.Duration // the longest time between two answers to watch
	last   time.Time
	ends   []func()
}

// played plays something until it is decided, each time with another key.
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

// late reports whether what has been done was possibly done after the end. Then the play is undecided.
func (s *stage) late(end time.Time) bool {
	if time.Now().Before(end) {
		return false
	}
	s.undecided = "a lease, or the time for an answer, was over too early"
	return true
}

// unheard reports whether a call of a long lease on many sites has possibly not waited for one that was slow.
func (s *stage) unheard(call time.Time) bool { return s.late(call.Add(siteTimeout(long))) }

// unanswered reports whether a call ended with an error after which nothing is certain. Then the play is undecided.
func (s *stage) unanswered(err error) bool {
	outcome, _ := locks.Classify(err)
	if outcome == history.Unknown {
		s.undecided = fmt.Sprint("no answer in time: ", err)
	}
	return outcome == history.Unknown
}

// release gives a hold back.
func (s *stage) release(t *testing.T, l locks.Lock, held locks.Lease) {
	t.Helper()
	if err := l.Release(t.Context(), held); !s.unanswered(err) {
		must(t, err)
	}
}

// watch asks sites all the time, until the play ends, to know for how long they or this process stand still.
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
				_ = c.Ping(ctx).Err() // an error is an answer, too
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

// slow reports whether those that are watched, or this process, stood still for longer than that. Then the play is
// undecided.
func (s *stage) slow(than time.Duration) bool {
	silent := s.beat()
	if silent <= than {
		return false
	}
	s.undecided = fmt.Sprintf("nothing was heard for %v, more than %v", silent, than)
	return true
}

// wakes tells whether a waiter is woken without an error before a while is over.
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
