package locks

import (
	"context"
	"errors"
	"testing"
	"time"
)

// onlyStrained are the tests of the locks that no fault alone shows: what they get wrong is how they are used.
var onlyStrained = map[string]struct {
	shows scenario
	right Spec
}{
	"kept-token":         {mixesUpItsUsers, lease},
	"wakes-itself":       {wakesWhoeverIsRefused, redisson},
	"own-age":            {takesWhatIsOldToIt, lease},
	"rounded-quorum":     {twoPairsOfFour, redlock},
	"fixed-quorum":       {refusesTwoOfThree, redlock},
	"redisson-semaphore": {outlivesItsHolder, redissonPermits},
	"permit-twice":       {hasOnePermitMore, redissonPermits},
	"permit-kept":        {outlivesItsHolder, redissonPermits},
	"upgrade-drops":      {dropsItsReader, readWrite},
	"readers-first":      {overtakesAWriter, readWrite},
	"readers-expiry":     {endsWithTheFirstReader, redissonRW},
}

func mixesUpItsUsers(t *testing.T, home *stage, s Spec, key string) bool {
	a := open(t, s, home.env())
	first := grant(t, a, key, long)
	grant(t, a, key+"-other", long)
	return errors.Is(a.Release(t.Context(), first), ErrLost)
}

// wakesWhoeverIsRefused lets one wait while another is refused: nobody has given anything back.
func wakesWhoeverIsRefused(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	a, b, c := open(t, s, home.env()), open(t, s, home.env()), open(t, s, home.env())
	grant(t, a, key, long)
	for _, l := range []Lock{b, c} {
		if _, err := l.Acquire(t.Context(), key, long); !refused(err) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), home.renewed)
	defer cancel()
	woken := startWait(ctx, b, key)
	for {
		if _, err := c.Acquire(t.Context(), key, long); !refused(err) {
			t.Errorf("got %v, want a refusal", err)
		}
		select {
		case w := <-woken:
			return w.err == nil
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func takesWhatIsOldToIt(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, long)
	outlive(2 * home.briefly)
	_, err := b.Acquire(t.Context(), key, home.briefly)
	return err == nil
}

// some is an env with the first of the sites.
func (b *bench) some(n int) Env {
	e := b.env()
	e.Sites, e.Places = e.Sites[:n], e.Places[:n]
	return e
}

func twoPairsOfFour(t *testing.T, home *stage, s Spec, key string) bool {
	for i := range 2 { // on each pair of sites, while somebody has the other one
		for k, c := range home.sites[:4] {
			must(t, c.Del(t.Context(), key).Err())
			if k/2 != i {
				must(t, c.Set(t.Context(), key, "somebody", 0).Err())
			}
		}
		if home.tried(t, open(t, s, home.some(4)), key) != nil {
			return false
		}
	}
	return true
}

func refusesTwoOfThree(t *testing.T, home *stage, s Spec, key string) bool {
	must(t, home.sites[0].Set(t.Context(), key, "somebody", 0).Err())
	return home.tried(t, open(t, s, home.some(3)), key) != nil
}
