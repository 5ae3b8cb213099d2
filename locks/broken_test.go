package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// A scenario tells whether a lock shows a fault. It is played on a broken lock, which must show it, and on a right
// one, which must not.
type scenario func(t *testing.T, home *stage, s Spec, key string) bool

// on plays the scenario on a lock that is to show the fault, or not. What ends as it is to end is decided, however slow
// the machine was.
func (shows scenario) on(t *testing.T, b *bench, s Spec, key string, want bool) {
	t.Helper()
	played(t, b, key, func(home *stage, key string) {
		got := shows(t, home, s, key)
		if got == want {
			home.undecided = ""
		} else if home.undecided == "" {
			t.Errorf("%s shows the fault: got %v, want %v", s.Name, got, want)
		}
	})
}

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
		"expire-seconds":   {grantedForNothing, lease},
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
			c.shows.on(t, home(s), s, s.Name, true)
			c.shows.on(t, home(c.right), c.right, s.Name+"-right", false)
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
	_, err := open(t, s, b.env()).Acquire(t.Context(), key, long)
	return err == nil
}

func bothGranted(t *testing.T, home *stage, s Spec, key string) bool {
	return grantsBoth(t, home, s, key, long)
}

// grantedForNothing is about a lease of less than a second.
func grantedForNothing(t *testing.T, home *stage, s Spec, key string) bool {
	const ttl = 900 * time.Millisecond
	call := time.Now()
	both := grantsBoth(t, home, s, key, ttl)
	return !home.late(until(call, ttl)) && both
}

func grantsBoth(t *testing.T, home *stage, s Spec, key string, ttl time.Duration) bool {
	e := home.env()
	b := open(t, s, e)
	tried, second := false, error(nil)
	try := func() {
		if tried {
			return
		}
		tried = true
		for now := time.Now().UnixMicro(); time.Now().UnixMicro() == now; {
			continue // who sorts by the time sees two of them
		}
		_, second = b.Acquire(t.Context(), key, ttl)
	}
	meanwhile(&e, try)
	_, first := open(t, s, e).Acquire(t.Context(), key, ttl)
	try()
	return first == nil && second == nil
}

func outlivesItsHolder(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	e.Pause = func(context.Context, string) error { return ErrCrashed }
	a, err := s.Open(e)
	must(t, err)
	if _, err := a.Acquire(t.Context(), key, home.briefly); err != nil && !errors.Is(err, ErrCrashed) {
		t.Fatal(err)
	}
	must(t, a.Close())
	outlive(2 * home.briefly)
	_, err = b.Acquire(t.Context(), key, home.briefly)
	return err != nil
}

// releasesAnothers lets the lease end before the release, or within it where it has two commands.
func releasesAnothers(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	changed := false
	change := func() {
		if changed {
			return
		}
		changed = true
		outlive(2 * home.briefly)
		grant(t, b, key, long)
	}
	meanwhile(&e, change)
	a := open(t, s, e)
	held, call := grantCalled(t, a, key, home.briefly)
	if s.Name != getDel.Name && s.Name != clockDel.Name && s.Name != watch.Name {
		change()
	}
	_ = a.Release(t.Context(), held)
	if !changed {
		if !home.late(until(call, home.briefly)) {
			t.Error("the lock did not change hands")
		}
		return false
	}
	return home.free(t, s, key)
}

func takenOverTwice(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	grant(t, open(t, s, e), key, home.briefly) // and dies
	outlive(2 * home.briefly)
	meanwhile(&e, func() { grant(t, b, key, long) })
	_, err := open(t, s, e).Acquire(t.Context(), key, long)
	return err == nil
}

func extendsNothing(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	meanwhile(&e, func() { must(t, home.sites[0].Del(t.Context(), key).Err()) })
	a := open(t, s, e)
	_, err := a.Extend(t.Context(), grant(t, a, key, long), long)
	return err == nil
}

func prolongsAnothers(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	a := open(t, s, home.env())
	held := grant(t, a, key, home.renewed)
	must(t, home.sites[0].Del(t.Context(), key).Err())
	grant(t, open(t, lease, home.env()), key, home.renewed) // and dies
	prolonged := home.renewal(t, key) >= 0
	_ = a.Release(t.Context(), held)
	return prolonged
}

// forgetsToRenew lets the lock change hands within a release.
func forgetsToRenew(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	e := home.env()
	b := open(t, s, e)
	changed := false
	change := func() { changed = true; grant(t, b, key, home.renewed) }
	meanwhile(&e, change)
	a := open(t, s, e)
	if err := a.Release(t.Context(), grant(t, a, key, home.renewed)); err != nil {
		if !home.slow(home.renewed / 4) {
			t.Error(err)
		}
		return false
	}
	if !changed {
		change()
	}
	return home.renewal(t, key) < 0
}

// comesBackToLife removes the key: it is there again, or its holder is told.
func comesBackToLife(t *testing.T, home *stage, s Spec, key string) bool {
	held := grant(t, open(t, s, home.env()), key, home.renewed)
	must(t, home.sites[0].Del(t.Context(), key).Err())
	back := false
	live.Wait(t, "that the key comes back, or its holder is told", func() bool {
		there, err := home.sites[0].Exists(t.Context(), key).Result()
		must(t, err)
		back = there == 1
		return back || told(held)
	})
	return back
}

func believesInSilence(t *testing.T, home *stage, s Spec, key string) bool {
	own := newBench(t, homeName(s)) // its servers are paused
	// Each renewal finds a connection: one that has to be made first has certainly failed, and is no silence.
	var pool []*redis.Conn
	for range 10 {
		c := own.sites[0].(*redis.Client).Conn()
		must(t, c.Ping(t.Context()).Err())
		pool = append(pool, c)
	}
	for _, c := range pool {
		must(t, c.Close())
	}
	held := grant(t, open(t, s, own.env()), key, home.renewed)
	home.watch(t) // this process only
	defer home.slow(home.renewed / 4)
	must(t, own.top.Nodes[0].Pause())
	defer func() { must(t, own.top.Nodes[0].Resume()) }()
	select {
	case <-held.Lost:
	case <-time.After(2 * home.renewed): // longer than a lease renewed just before the pause would last
	}
	return !told(held)
}

func believesTooLong(t *testing.T, home *stage, s Spec, key string) bool {
	ttl := 50 * home.renewed
	held, call := grantCalled(t, open(t, s, home.env()), key, ttl)
	if home.late(call.Add(drift(ttl))) { // this process may have stood still before the lock looked at its clock
		return false
	}
	return held.Until.After(call.Add(ttl))
}

// believesTooLongWithHungSites: a try waits for a hung site as long as it can. No lease may count from the end of that.
func believesTooLongWithHungSites(t *testing.T, home *stage, s Spec, key string) bool {
	own := newBench(t, homeName(s)) // its servers are paused
	for _, n := range own.top.Nodes[:2] {
		must(t, n.Pause())
		defer func() { must(t, n.Resume()) }()
	}
	held, call := grantCalled(t, open(t, s, own.env()), key, long)
	half := siteTimeout(long) / 2
	before := time.Now().Add(-half)
	if home.late(call.Add(3 * half)) {
		return false
	}
	return held.Until.After(until(before, long))
}

func reentersWhatIsLost(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, home.briefly)
	outlive(2 * home.briefly)
	grant(t, b, key, long)
	_, err := a.Acquire(t.Context(), key, long)
	return err == nil
}

func fencesOutOfOrder(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	var late Lease
	next := func() {
		if late.Key == "" {
			outlive(2 * home.briefly)
			late = grant(t, b, key, long)
		}
	}
	meanwhile(&e, next)
	first := grant(t, open(t, s, e), key, home.briefly)
	next()
	if first.Fence == 0 || late.Fence == 0 || first.Fence == late.Fence {
		t.Errorf("fences %d and %d", first.Fence, late.Fence)
	}
	return first.Fence > late.Fence
}

// tried is how a try of a lock on many sites ends, unless one of them may not have been heard.
func (s *stage) tried(t *testing.T, l Lock, key string) error {
	call := time.Now()
	_, err := l.Acquire(t.Context(), key, long)
	s.unheard(call)
	return err
}

func twoPairs(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	for _, c := range home.sites[2:] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	first := home.tried(t, a, key)
	for _, c := range home.sites[2:] {
		must(t, c.Del(t.Context(), key).Err())
	}
	return first == nil && home.tried(t, b, key) == nil
}

func leavesKeys(t *testing.T, home *stage, s Spec, key string) bool {
	for _, c := range home.sites[:3] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	if err := home.tried(t, open(t, s, home.env()), key); !errors.Is(err, ErrQuorum) && home.undecided == "" {
		t.Errorf("got %v, want ErrQuorum", err)
	}
	left, err := home.sites[4].Exists(t.Context(), key).Result()
	must(t, err)
	return left == 1
}

// starvesWithAHungSite: the try takes longer than the lease.
func starvesWithAHungSite(t *testing.T, home *stage, s Spec, key string) bool {
	own := newBench(t, homeName(s)) // its servers are paused
	ttl := 5 * home.renewed
	e := own.env()
	e.Sites = nil
	for _, site := range own.top.Sites {
		c := site.Client(topologies.ClientOptions{ReadTimeout: ttl})
		defer func() { must(t, c.Close()) }()
		e.Sites = append(e.Sites, c)
	}
	must(t, own.top.Nodes[0].Pause())
	defer func() { must(t, own.top.Nodes[0].Resume()) }()
	home.watch(t, own.sites[1:]...)
	defer home.slow(ttl / 2)
	call := time.Now()
	_, err := open(t, s, e).Acquire(t.Context(), key, ttl)
	if err != nil && time.Now().Before(call.Add(ttl)) {
		home.undecided = fmt.Sprint("others did not answer either: ", err)
		return false
	}
	return err != nil
}
