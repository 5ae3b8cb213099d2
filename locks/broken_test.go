package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/topologies"
)

// A scenario tells whether a lock shows a fault. It is played on a broken lock, which must show it, and on a right
// one, which must not.
type scenario func(t *testing.T, home *bench, s Spec, key string) bool

// soon plays the scenario until it ends as it should. A busy machine, on which a lease ends before it is renewed, can make
// it end otherwise now and then.
func (shows scenario) soon(t *testing.T, home *bench, s Spec, key string, want bool) bool {
	for try := range 3 {
		if shows(t, home, s, fmt.Sprint(key, try)) == want {
			return true
		}
	}
	return false
}

// briefly is a lease that a test outlives on purpose, renewed one that is to be renewed meanwhile.
const (
	briefly = 60 * time.Millisecond
	renewed = 800 * time.Millisecond
)

func TestEveryBrokenLockShowsItsFault(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		shows scenario
		right Spec
	}{
		"none":             {bothGranted, lease},
		"bit":              {bothGranted, lease},
		"setnx":            {outlivesItsHolder, lease},
		"setnx-expire":     {outlivesItsHolder, watch},
		"expire-seconds":   {bothGranted, lease},
		"timestamp":        {releasesAnothers, lease},
		"timestamp-del":    {takenOverTwice, timestamp},
		"plain-del":        {releasesAnothers, lease},
		"get-del":          {releasesAnothers, watch},
		"watch-lax":        {releasesAnothers, watch},
		"watch-unheard":    {extendsNothing, watch},
		"blind-watchdog":   {prolongsAnothers, watchdog},
		"watchdog-by-name": {forgetsToRenew, watchdog},
		"renew-recreates":  {comesBackToLife, watchdog},
		"late-belief":      {believesInSilence, watchdog},
		"reply-validity":   {believesTooLong, lease},
		"weak-token":       {releasesAnothers, lease},
		"local-reentry":    {reentersWhatIsLost, reentrant},
		"fence-after":      {fencesOutOfOrder, fenced},
		"half-quorum":      {twoPairs, redlock},
		"no-elapsed":       {believesTooLongWithHungSites, redlock},
		"keeps-minority":   {leavesKeys, redlock},
		"wait-all":         {starvesWithAHungSite, redlock},

		"redislock-token":      {firstOfTwelveTakesTheLast, libRedislock},
		"redsync-setnx-extend": {extendsWhatHasEnded, libRedsync},
	}
	home := homes(t)
	for _, s := range every {
		c, ok := cases[s.Name]
		if s.Broken == "" {
			continue
		}
		if !ok {
			c, ok = reported[s.Name]
		}
		if !ok {
			c, ok = onlyStrained[s.Name]
		}
		if !ok {
			t.Errorf("%s: no scenario", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			if !c.shows.soon(t, home(s), s, s.Name, true) {
				t.Error("does not show its fault")
			}
			if !c.shows.soon(t, home(c.right), c.right, s.Name+"-right", false) {
				t.Errorf("%s shows it, too", c.right.Name)
			}
		})
	}
}

// meanwhile lets something happen the first time that a worker stands between its two commands.
func meanwhile(e *Env, f func()) {
	var once sync.Once
	e.Pause = func(context.Context, string) error { once.Do(f); return nil }
}

func outlive(d time.Duration) { <-time.After(d) }

// free tells whether one more worker gets the lock.
func (b *bench) free(t *testing.T, s Spec, key string) bool {
	t.Helper()
	_, err := open(t, s, b.env()).Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func bothGranted(t *testing.T, home *bench, s Spec, key string) bool {
	const ttl = 500 * time.Millisecond
	e := home.env()
	b := open(t, s, e)
	tried, second := false, error(nil)
	try := func() {
		if tried {
			return
		}
		tried = true
		_, second = b.Acquire(t.Context(), key, ttl)
	}
	meanwhile(&e, try)
	_, first := open(t, s, e).Acquire(t.Context(), key, ttl)
	try()
	return first == nil && second == nil
}

func outlivesItsHolder(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	e.Pause = func(context.Context, string) error { return ErrCrashed }
	a, err := s.Open(e)
	must(t, err)
	if _, err := a.Acquire(t.Context(), key, briefly); err != nil && !errors.Is(err, ErrCrashed) {
		t.Fatal(err)
	}
	must(t, a.Close())
	outlive(3 * briefly)
	_, err = b.Acquire(t.Context(), key, briefly)
	return err != nil
}

// releasesAnothers lets the lease end before the release, or within it where it has two commands.
func releasesAnothers(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	changed := false
	change := func() {
		if changed {
			return
		}
		changed = true
		outlive(2 * briefly)
		grant(t, b, key, 10*time.Second)
	}
	meanwhile(&e, change)
	a := open(t, s, e)
	held := grant(t, a, key, briefly)
	if s.Name != getDel.Name && s.Name != clockDel.Name && s.Name != watch.Name {
		change()
	}
	_ = a.Release(t.Context(), held)
	if !changed {
		t.Fatal("the lock did not change hands")
	}
	return home.free(t, s, key)
}

func takenOverTwice(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	grant(t, open(t, s, e), key, briefly) // and dies
	outlive(2 * briefly)
	meanwhile(&e, func() { grant(t, b, key, 10*time.Second) })
	_, err := open(t, s, e).Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func extendsNothing(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	meanwhile(&e, func() { must(t, home.sites[0].Del(t.Context(), key).Err()) })
	a := open(t, s, e)
	_, err := a.Extend(t.Context(), grant(t, a, key, 10*time.Second), 10*time.Second)
	return err == nil
}

func prolongsAnothers(t *testing.T, home *bench, s Spec, key string) bool {
	a := open(t, s, home.env())
	held := grant(t, a, key, renewed)
	must(t, home.sites[0].Del(t.Context(), key).Err())
	grant(t, open(t, lease, home.env()), key, renewed) // and dies
	outlive(3 * renewed)
	there, err := home.sites[0].Exists(t.Context(), key).Result()
	must(t, err)
	_ = a.Release(t.Context(), held)
	return there == 1
}

// forgetsToRenew lets the lock change hands within a release.
func forgetsToRenew(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	changed := false
	change := func() { changed = true; grant(t, b, key, renewed) }
	meanwhile(&e, change)
	a := open(t, s, e)
	must(t, a.Release(t.Context(), grant(t, a, key, renewed)))
	if !changed {
		change()
	}
	outlive(3 * renewed)
	return home.free(t, s, key)
}

func comesBackToLife(t *testing.T, home *bench, s Spec, key string) bool {
	a := open(t, s, home.env())
	held := grant(t, a, key, renewed)
	must(t, home.sites[0].Del(t.Context(), key).Err())
	outlive(renewed)
	there, err := home.sites[0].Exists(t.Context(), key).Result()
	must(t, err)
	select {
	case <-held.Lost:
		return false
	default:
		return there == 1
	}
}

func believesInSilence(t *testing.T, _ *bench, s Spec, key string) bool {
	home := newBench(t, homeName(s)) // its servers are paused
	// Each renewal finds a connection: one that has to be made first has certainly failed, and is no silence.
	var pool []*redis.Conn
	for range 10 {
		c := home.sites[0].(*redis.Client).Conn()
		must(t, c.Ping(t.Context()).Err())
		pool = append(pool, c)
	}
	for _, c := range pool {
		must(t, c.Close())
	}
	held := grant(t, open(t, s, home.env()), key, renewed)
	must(t, home.top.Nodes[0].Pause())
	defer func() { must(t, home.top.Nodes[0].Resume()) }()
	select {
	case <-held.Lost:
		return false
	case <-time.After(renewed + renewed/2): // longer than a lease renewed just before the pause would last
		return true
	}
}

func believesTooLong(t *testing.T, home *bench, s Spec, key string) bool {
	const ttl = time.Second
	call := time.Now()
	return grant(t, open(t, s, home.env()), key, ttl).Until.After(call.Add(ttl))
}

func believesTooLongWithHungSites(t *testing.T, _ *bench, s Spec, key string) bool {
	home := newBench(t, homeName(s)) // its servers are paused
	for _, n := range home.top.Nodes[:2] {
		must(t, n.Pause())
		defer func() { must(t, n.Resume()) }()
	}
	const ttl = 500 * time.Millisecond
	call := time.Now()
	return grant(t, open(t, s, home.env()), key, ttl).Until.After(call.Add(ttl))
}

func reentersWhatIsLost(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, briefly)
	outlive(2 * briefly)
	grant(t, b, key, 10*time.Second)
	_, err := a.Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func fencesOutOfOrder(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	var late Lease
	next := func() {
		if late.Key == "" {
			outlive(2 * briefly)
			late = grant(t, b, key, 10*time.Second)
		}
	}
	meanwhile(&e, next)
	first := grant(t, open(t, s, e), key, briefly)
	next()
	if first.Fence == 0 || late.Fence == 0 || first.Fence == late.Fence {
		t.Errorf("fences %d and %d", first.Fence, late.Fence)
	}
	return first.Fence > late.Fence
}

func twoPairs(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	for _, c := range home.sites[2:] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	_, first := a.Acquire(t.Context(), key, 10*time.Second)
	for _, c := range home.sites[2:] {
		must(t, c.Del(t.Context(), key).Err())
	}
	if first != nil {
		return false
	}
	_, second := b.Acquire(t.Context(), key, 10*time.Second)
	return second == nil
}

func leavesKeys(t *testing.T, home *bench, s Spec, key string) bool {
	for _, c := range home.sites[:3] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	_, err := open(t, s, home.env()).Acquire(t.Context(), key, 10*time.Second)
	if !errors.Is(err, ErrQuorum) {
		t.Errorf("got %v, want ErrQuorum", err)
	}
	left, err := home.sites[4].Exists(t.Context(), key).Result()
	must(t, err)
	return left == 1
}

func starvesWithAHungSite(t *testing.T, _ *bench, s Spec, key string) bool {
	home := newBench(t, homeName(s)) // its servers are paused
	const ttl = 2 * time.Second
	e := home.env()
	e.Sites = nil
	for _, site := range home.top.Sites {
		c := site.Client(topologies.ClientOptions{ReadTimeout: ttl})
		defer func() { must(t, c.Close()) }()
		e.Sites = append(e.Sites, c)
	}
	must(t, home.top.Nodes[0].Pause())
	defer func() { must(t, home.top.Nodes[0].Resume()) }()
	_, err := open(t, s, e).Acquire(t.Context(), key, ttl)
	return err != nil
}
