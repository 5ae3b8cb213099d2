package catalogue

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"hammerlock/history"
	"hammerlock/locks"
)

// TestEverySetIsTakenWholeOrNotAtAll requests three keys of which another worker holds one. It does so with each
// correct lock that takes several keys: on a single server, in a cluster and on several sites.
func TestEverySetIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, s := range All {
		if !s.Claims.Sets || s.Broken != "" {
			continue
		}
		topologies := []string{"single", "cluster"}
		if s.Sites == locks.ManySites {
			topologies = []string{"redlock"}
		}
		for _, on := range topologies {
			t.Run(s.Name+" on "+on, func(t *testing.T) {
				t.Parallel()
				played(t, newBench(t, on), "k", func(home *stage, name string) { takesAll(t, home, s, name) })
			})
		}
	}
}

func takesAll(t *testing.T, home *stage, s locks.Spec, name string) {
	a, b := home.pair(t, s)
	var keys []string
	for i := range 3 {
		keys = append(keys, fmt.Sprintf("%s:{%d}", name, i))
	}
	gather := func(l locks.Lock, keys ...string) (locks.Lease, error) {
		lease, err := l.(locks.Several).AcquireAll(t.Context(), keys, long, 0)
		if err != nil && late(err) {
			home.undecided = err.Error()
		}
		return lease, err
	}
	for i, key := range keys {
		held, err := gather(b, key)
		must(t, err)
		if _, err := gather(a, keys...); home.undecided == "" && !refused(err) {
			t.Errorf("key %d is taken: %v, want a refusal", i, err)
		}
		for _, other := range slices.Concat(keys[:i], keys[i+1:]) {
			lease, err := gather(b, other)
			if home.undecided != "" {
				return
			}
			if err != nil {
				t.Errorf("a try that was refused keeps %s: %v", other, err)
				continue
			}
			home.release(t, b, lease)
		}
		home.release(t, b, held)
	}
	slices.Reverse(keys)
	held, err := gather(a, keys...)
	must(t, err)
	for _, key := range keys {
		if _, err := gather(b, key); home.undecided == "" && !refused(err) {
			t.Errorf("%s of a hold of three: %v, want a refusal", key, err)
		}
	}
	for _, site := range home.sites {
		must(t, site.Del(t.Context(), keys[1]).Err())
	}
	if _, err := a.Extend(t.Context(), held, long); home.undecided == "" && !errors.Is(err, locks.ErrLost) {
		t.Errorf("extended with a key lost: %v, want ErrLost", err)
	}
	if err := a.Release(t.Context(), held); home.undecided == "" && !errors.Is(err, locks.ErrLost) {
		t.Errorf("released with a key lost: %v, want ErrLost", err)
	}
	if _, err := gather(b, keys...); home.undecided == "" && err != nil {
		t.Errorf("what was left has not been given back: %v", err)
	}
}

// TestTogether: a hold is lost if one key is lost. Any other error leaves the outcome unknown.
func TestTogether(t *testing.T) {
	other := errors.New("READONLY")
	for _, tt := range []struct {
		errs []error
		want history.Outcome
		lost bool
	}{
		{nil, history.OK, false},
		{[]error{nil, nil}, history.OK, false},
		{[]error{nil, locks.ErrLost, nil}, history.Failed, true},
		{[]error{locks.ErrLost, locks.ErrLost}, history.Failed, true},
		{[]error{locks.ErrLost, locks.ErrRefused}, history.Unknown, false},
		{[]error{locks.ErrRefused, locks.ErrLost}, history.Unknown, false},
		{[]error{nil, other}, history.Unknown, false},
		{[]error{locks.ErrRefused}, history.Failed, false},
	} {
		err := together(tt.errs)
		if outcome, _ := locks.Classify(err); outcome != tt.want || errors.Is(err, locks.ErrLost) != tt.lost {
			t.Errorf("%v: %v, which is %v, want %v", tt.errs, err, outcome, tt.want)
		}
	}
}
