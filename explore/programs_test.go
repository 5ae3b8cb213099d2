package explore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/internal/live"
	"hammerlock/locks"
)

// drawnLock is a lock with random requests in a random order, which nobody would write.
type drawnLock struct {
	env              locks.Env
	acquire, release []func(context.Context, redis.UniversalClient, string) error
	at               []int // by question: the site
}

// questions are the possible requests besides the one that decides: reads, changes, two steps together, a script.
var questions = []func(context.Context, redis.UniversalClient, string) error{
	func(ctx context.Context, c redis.UniversalClient, key string) error { return c.Get(ctx, key).Err() },
	func(ctx context.Context, c redis.UniversalClient, key string) error { return c.PTTL(ctx, key).Err() },
	func(ctx context.Context, c redis.UniversalClient, key string) error {
		return c.Incr(ctx, key+":n").Err()
	},
	func(ctx context.Context, c redis.UniversalClient, key string) error {
		return c.PExpire(ctx, key, 200*time.Millisecond).Err()
	},
	func(ctx context.Context, c redis.UniversalClient, key string) error {
		return c.SetNX(ctx, key+":other", "1", 100*time.Millisecond).Err()
	},
	func(ctx context.Context, c redis.UniversalClient, key string) error {
		return c.Eval(ctx, "if redis.call('exists', KEYS[1]) == 1 then return redis.call('del', KEYS[1] .. "+
			"':other') end return 0", []string{key}).Err()
	},
}

func drawLock(r *rand.Rand, sites int) locks.Spec {
	var asks [2][]func(context.Context, redis.UniversalClient, string) error
	for i := range asks {
		for range 1 + r.IntN(2) {
			asks[i] = append(asks[i], questions[r.IntN(len(questions))])
		}
	}
	var at []int
	for range 6 {
		at = append(at, r.IntN(sites))
	}
	return locks.Spec{Name: "drawn", Sites: locks.ManySites, Claims: history.Claims{Expires: true},
		Open: func(e locks.Env) (locks.Lock, error) {
			return drawnLock{e, asks[0], asks[1], at}, nil
		}}
}

func (l drawnLock) ask(ctx context.Context, key string,
	all []func(context.Context, redis.UniversalClient, string) error) error {
	for i, question := range all {
		if err := question(ctx, l.env.Sites[l.at[i]], key); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

func (l drawnLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	token, now := fmt.Sprintf("token-%d", l.env.Rand.Int64()), time.Now()
	ok, err := l.env.Sites[l.at[5]].SetNX(ctx, key, token, ttl).Result()
	switch {
	case err != nil:
		return locks.Lease{}, err
	case !ok:
		return locks.Lease{}, locks.ErrBusy
	}
	return locks.Lease{Key: key, Token: token, Until: now.Add(ttl)}, l.ask(ctx, key, l.acquire)
}

func (l drawnLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	now := time.Now()
	err := l.env.Sites[l.at[5]].PExpire(ctx, lease.Key, ttl).Err()
	if err == nil {
		lease.Until = now.Add(ttl)
	}
	return lease, err
}

func (l drawnLock) Release(ctx context.Context, lease locks.Lease) error {
	err := l.ask(ctx, lease.Key, l.release)
	return errors.Join(err, l.env.Sites[l.at[5]].Del(ctx, lease.Key).Err())
}

func (drawnLock) Close() error { return nil }

// TestDrawnProgramsLeaveOutNothing: for random locks, one deviation of each kind and two of one kind have the same
// outcomes as by brute force. There is one lock with -short, otherwise one for each kind, and more at night.
func TestDrawnProgramsLeaveOutNothing(t *testing.T) {
	kinds := []act{loses, breaks, pauses, refuses, hangs, forgets, leaps, expires, crashes, cancelsCall}
	many := len(kinds)
	if testing.Short() {
		many = 1
	} else if live.Nightly() {
		many = 24
	}
	for i := range many {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		o := tiny
		o.Sites, o.Hold = 1+2*(i%2), 20*time.Millisecond
		spec := drawLock(r, o.Sites)
		same := func(o Options) {
			want := enumerate(t, spec, o)
			if got := outcomes(t, spec, o, nil); !maps.Equal(got, want) {
				t.Errorf("program %d, %s: %d outcomes, %d by brute force\n%s", i, acts[o.only], len(got), len(want),
					difference(got, want))
			}
		}
		same(o)
		o.Deviations, o.only = 2, kinds[i%len(kinds)]
		same(o)
	}
}

// TestTheFirstCounterexampleIsTheSame: for each broken lock, a search with reduction finds the same counterexample
// first as one without. The exception is a lock with several counterexamples: the two searches find them in another
// order. There the search with reduction must find the other one too.
func TestTheFirstCounterexampleIsTheSame(t *testing.T) {
	others := []string{}
	for i, spec := range explorable(true) {
		if testing.Short() && i%8 > 0 || !live.Nightly() && i%4 > 0 {
			continue
		}
		o := suited(spec, 1)
		got := run(t, spec, o)
		o.Unreduced = true
		want := run(t, spec, o)
		if (got.Found == nil) != (want.Found == nil) {
			t.Errorf("%s: got %s, want %s", spec.Name, got.Verdict(), want.Verdict())
			continue
		}
		if f := got.Found; f != nil && !(f.Checker == want.Found.Checker && f.Cause == want.Found.Cause &&
			slices.EqualFunc(f.Schedule, want.Found.Schedule, sameChoice)) {
			others = append(others, spec.Name)
			o.Unreduced = false
			if !findsToo(t, spec, o, want.Found) {
				t.Errorf("%s: got %s, %s by %v, want %s, %s by %v", spec.Name, f.Checker, f.Cause, f.Schedule,
					want.Found.Checker, want.Found.Cause, want.Found.Schedule)
			}
		}
	}
	if len(others) > 1 {
		t.Errorf("of %v another counterexample is the first: of one at most", others)
	}
}

// findsToo tells whether a search that goes on finds a violation with the same cause.
func findsToo(t *testing.T, spec locks.Spec, o Options, want *Found) bool {
	for outcome := range outcomes(t, spec, o, nil) {
		if strings.HasPrefix(outcome, want.Checker+" "+want.Cause+" ") {
			return true
		}
	}
	return false
}

// sameChoice compares only the text: an event that can wait comes later.
func sameChoice(a, b Choice) bool { return a.What == b.What }
