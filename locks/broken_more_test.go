package locks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/live"
	"hammerlock/topologies"
)

// reported are the scenarios of the locks that are modelled on reports.
var reported = map[string]struct {
	shows scenario
	right Spec
}{
	"shared-handle":      {releasesAnothers, lease},
	"cleared-ttl":        {staysWhereOneWasRefused, lease},
	"mutex-kept":         {shutsItsProcessOut, lease},
	"mutex-evicted":      {forgetsItsProcess, lease},
	"extend-overwrites":  {takesBack, lease},
	"reentry-retakes":    {entersAgainAfterAnother, reentrant},
	"subscribe-late":     {missesARelease, redisson},
	"deaf-to-expiry":     {outsleepsALease, redisson},
	"dead-in-line":       {waitsForTheDead, fair},
	"retried-setnx":      {refusesItself, lease},
	"silent-release":     {releasesNothing, redlock},
	"float-quorum":       {refusesAMajority, redlock},
	"reached-quorum":     {grantsInAMinority, redlock},
	"renewal-dies":       {endsAtAnError, watchdog},
	"stop-after-release": {renewsWhatWasLeft, watchdog},
	"extend-adds":        {growsWithRenewals, watchdog},
	"token-twice":        {releasesAnothers, lease},
	"reaper":             {takenBeforeItsEnd, lease},
	"clock-del":          {releasesAnothers, lease},
	"zset-rank":          {bothGranted, lease},
	"setnx-heal":         {believesInItsSuccessor, lease},
}

func staysWhereOneWasRefused(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	_, call := grantCalled(t, a, key, home.briefly)
	_, err := b.Acquire(t.Context(), key, home.briefly)
	if home.late(until(call, home.briefly)) {
		return false
	}
	if !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	outlive(2 * home.briefly)
	return !home.free(t, s, key)
}

func shutsItsProcessOut(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	held := grant(t, a, key, home.briefly)
	outlive(2 * home.briefly)
	if err := a.Release(t.Context(), held); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
	_, err := b.Acquire(t.Context(), key, long)
	return err != nil
}

func forgetsItsProcess(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, long)
	for i := range len(registry{}.newest) {
		grant(t, b, fmt.Sprint(key, "-", i), long)
	}
	_, err := b.Acquire(t.Context(), key, long)
	return err == nil
}

func takesBack(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	held := grant(t, a, key, home.briefly)
	outlive(2 * home.briefly)
	next := grant(t, b, key, long)
	_, err := a.Extend(t.Context(), held, long)
	return err == nil && errors.Is(b.Release(t.Context(), next), ErrLost)
}

func entersAgainAfterAnother(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, home.briefly)
	outlive(2 * home.briefly)
	must(t, b.Release(t.Context(), grant(t, b, key, long)))
	_, err := a.Acquire(t.Context(), key, long)
	return err == nil
}

func missesARelease(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	a, b := home.pair(t, s)
	held := grant(t, a, key, long)
	if _, err := b.Acquire(t.Context(), key, long); !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	must(t, a.Release(t.Context(), held))
	return !wakes(t, b, key, home.renewed)
}

func outsleepsALease(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	a, err := s.Open(home.env())
	must(t, err)
	b := open(t, s, home.env())
	_, call := grantCalled(t, a, key, home.renewed)
	must(t, a.Close())
	_, err = b.Acquire(t.Context(), key, home.renewed)
	if home.late(until(call, home.renewed)) {
		return false
	}
	if !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	return !wakes(t, b, key, 2*home.renewed)
}

func waitsForTheDead(t *testing.T, home *stage, s Spec, key string) bool {
	a, dead, b := open(t, s, home.env()), open(t, s, home.env()), open(t, s, home.env())
	held := grant(t, a, key, long)
	for _, l := range []Lock{dead, b} {
		if _, err := l.Acquire(t.Context(), key, home.briefly); !refused(err) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	outlive(2 * home.briefly)
	must(t, a.Release(t.Context(), held))
	_, err := b.Acquire(t.Context(), key, home.briefly)
	return err != nil
}

// flaw breaks the connection under one command when it is set: before the server has it, or after.
type flaw struct{ before, after atomic.Bool }

func (f *flaw) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.before.CompareAndSwap(true, false) {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		err := next(ctx, cmd)
		if f.after.CompareAndSwap(true, false) {
			err = io.EOF
			cmd.SetErr(err)
		}
		return err
	}
}

func (*flaw) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*flaw) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// flawed is an env whose client has a flaw.
func (b *bench) flawed(t *testing.T) (Env, *flaw) {
	e, f := b.env(), &flaw{}
	c := b.top.Sites[0].Client(topologies.ClientOptions{ReadTimeout: live.Deadline})
	t.Cleanup(func() { must(t, c.Close()) })
	must(t, c.Ping(t.Context()).Err())
	c.AddHook(f)
	e.Sites = []redis.UniversalClient{c}
	return e, f
}

func refusesItself(t *testing.T, home *stage, s Spec, key string) bool {
	e, f := home.flawed(t)
	f.after.Store(true)
	_, err := open(t, s, e).Acquire(t.Context(), key, long)
	if home.free(t, s, key) {
		t.Error("the command was not executed")
	}
	return refused(err)
}

func releasesNothing(t *testing.T, home *stage, s Spec, key string) bool {
	a := open(t, s, home.env())
	held := grant(t, a, key, long)
	for _, c := range home.sites {
		must(t, c.Del(t.Context(), key).Err())
	}
	call := time.Now()
	err := a.Release(t.Context(), held)
	return !home.unheard(call) && err == nil
}

func refusesAMajority(t *testing.T, home *stage, s Spec, key string) bool {
	for _, c := range home.sites[:2] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	return home.tried(t, open(t, s, home.env()), key) != nil
}

func grantsInAMinority(t *testing.T, home *stage, s Spec, key string) bool {
	own := newBench(t, homeName(s)) // its servers are paused
	for _, n := range own.top.Nodes[:3] {
		must(t, n.Pause())
		defer func() { must(t, n.Resume()) }()
	}
	home.watch(t, own.sites[3:]...)
	defer home.slow(siteTimeout(long) / 2)
	_, err := open(t, s, own.env()).Acquire(t.Context(), key, long)
	return err == nil
}

func endsAtAnError(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	e, f := home.flawed(t)
	held := grant(t, open(t, s, e), key, home.renewed)
	f.before.Store(true)
	live.Wait(t, "a renewal", func() bool { return !f.before.Load() })
	return home.renewal(t, key) < 0 && !told(held)
}

func renewsWhatWasLeft(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	e, f := home.flawed(t)
	a := open(t, s, e)
	held := grant(t, a, key, home.renewed)
	f.before.Store(true)
	if err := a.Release(t.Context(), held); !errors.Is(err, io.EOF) {
		if !home.slow(home.renewed / 4) { // else a renewal had the flaw
			t.Errorf("release: got %v, want a broken connection", err)
		}
		return false
	}
	return home.renewal(t, key) >= 0
}

func growsWithRenewals(t *testing.T, home *stage, s Spec, key string) bool {
	home.watch(t, home.sites[0])
	defer home.slow(home.renewed / 4)
	grant(t, open(t, s, home.env()), key, home.renewed)
	return home.renewal(t, key) > home.renewed
}

func takenBeforeItsEnd(t *testing.T, home *stage, s Spec, key string) bool {
	a, b := home.pair(t, s)
	_, call := grantCalled(t, a, key, home.renewed)
	outlive(home.renewed * 6 / 10)
	_, err := b.Acquire(t.Context(), key, home.renewed)
	return !home.late(until(call, home.renewed)) && err == nil
}

// believesInItsSuccessor lets the lock change hands within an acquisition.
func believesInItsSuccessor(t *testing.T, home *stage, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	changed, second := false, error(nil)
	change := func() {
		changed = true
		_, _ = b.Acquire(t.Context(), key, home.briefly)
		outlive(2 * home.briefly)
		_, second = b.Acquire(t.Context(), key, long)
	}
	meanwhile(&e, change)
	_, first := open(t, s, e).Acquire(t.Context(), key, long)
	if !changed {
		change()
	}
	return first == nil && second == nil
}
