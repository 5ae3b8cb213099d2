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

func staysWhereOneWasRefused(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, briefly)
	if _, err := b.Acquire(t.Context(), key, briefly); !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	outlive(2 * briefly)
	return !home.free(t, s, key)
}

func shutsItsProcessOut(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	held := grant(t, a, key, briefly)
	outlive(2 * briefly)
	if err := a.Release(t.Context(), held); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want ErrLost", err)
	}
	_, err := b.Acquire(t.Context(), key, 10*time.Second)
	return err != nil
}

func forgetsItsProcess(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, 10*time.Second)
	for i := range len(registry{}.newest) {
		grant(t, b, fmt.Sprint(key, "-", i), 10*time.Second)
	}
	_, err := b.Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func takesBack(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	held := grant(t, a, key, briefly)
	outlive(2 * briefly)
	next := grant(t, b, key, 10*time.Second)
	_, err := a.Extend(t.Context(), held, 10*time.Second)
	return err == nil && errors.Is(b.Release(t.Context(), next), ErrLost)
}

func entersAgainAfterAnother(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	grant(t, a, key, briefly)
	outlive(2 * briefly)
	must(t, b.Release(t.Context(), grant(t, b, key, 10*time.Second)))
	_, err := a.Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func missesARelease(t *testing.T, home *bench, s Spec, key string) bool {
	a, b := home.pair(t, s)
	held := grant(t, a, key, 10*time.Second)
	if _, err := b.Acquire(t.Context(), key, 10*time.Second); !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	must(t, a.Release(t.Context(), held))
	ctx, cancel := context.WithTimeout(t.Context(), renewed)
	defer cancel()
	return (<-startWait(ctx, b, key)).err != nil
}

func outsleepsALease(t *testing.T, home *bench, s Spec, key string) bool {
	a, err := s.Open(home.env())
	must(t, err)
	b := open(t, s, home.env())
	grant(t, a, key, renewed)
	must(t, a.Close())
	if _, err := b.Acquire(t.Context(), key, renewed); !refused(err) {
		t.Errorf("got %v, want a refusal", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*renewed)
	defer cancel()
	return (<-startWait(ctx, b, key)).err != nil
}

func waitsForTheDead(t *testing.T, home *bench, s Spec, key string) bool {
	a, dead, b := open(t, s, home.env()), open(t, s, home.env()), open(t, s, home.env())
	held := grant(t, a, key, 10*time.Second)
	for _, l := range []Lock{dead, b} {
		if _, err := l.Acquire(t.Context(), key, briefly); !refused(err) {
			t.Errorf("got %v, want a refusal", err)
		}
	}
	outlive(2 * briefly)
	must(t, a.Release(t.Context(), held))
	_, err := b.Acquire(t.Context(), key, briefly)
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
	c := b.top.Sites[0].Client(topologies.ClientOptions{})
	t.Cleanup(func() { must(t, c.Close()) })
	must(t, c.Ping(t.Context()).Err())
	c.AddHook(f)
	e.Sites = []redis.UniversalClient{c}
	return e, f
}

func refusesItself(t *testing.T, home *bench, s Spec, key string) bool {
	e, f := home.flawed(t)
	f.after.Store(true)
	_, err := open(t, s, e).Acquire(t.Context(), key, 10*time.Second)
	if home.free(t, s, key) {
		t.Error("the command was not executed")
	}
	return refused(err)
}

func releasesNothing(t *testing.T, home *bench, s Spec, key string) bool {
	a := open(t, s, home.env())
	held := grant(t, a, key, 10*time.Second)
	for _, c := range home.sites {
		must(t, c.Del(t.Context(), key).Err())
	}
	return a.Release(t.Context(), held) == nil
}

func refusesAMajority(t *testing.T, home *bench, s Spec, key string) bool {
	for _, c := range home.sites[:2] {
		must(t, c.Set(t.Context(), key, "somebody", 0).Err())
	}
	_, err := open(t, s, home.env()).Acquire(t.Context(), key, 10*time.Second)
	return err != nil
}

func grantsInAMinority(t *testing.T, _ *bench, s Spec, key string) bool {
	home := newBench(t, homeName(s)) // its servers are paused
	for _, n := range home.top.Nodes[:3] {
		must(t, n.Pause())
		defer func() { must(t, n.Resume()) }()
	}
	_, err := open(t, s, home.env()).Acquire(t.Context(), key, 10*time.Second)
	return err == nil
}

func endsAtAnError(t *testing.T, home *bench, s Spec, key string) bool {
	e, f := home.flawed(t)
	held := grant(t, open(t, s, e), key, renewed)
	f.before.Store(true)
	outlive(2 * renewed)
	select {
	case <-held.Lost:
		return false
	default:
		return home.free(t, s, key)
	}
}

func renewsWhatWasLeft(t *testing.T, home *bench, s Spec, key string) bool {
	e, f := home.flawed(t)
	a := open(t, s, e)
	held := grant(t, a, key, renewed)
	f.before.Store(true)
	if err := a.Release(t.Context(), held); !errors.Is(err, io.EOF) {
		t.Errorf("release: got %v, want a broken connection", err)
	}
	outlive(2 * renewed)
	return !home.free(t, s, key)
}

func growsWithRenewals(t *testing.T, home *bench, s Spec, key string) bool {
	grant(t, open(t, s, home.env()), key, renewed)
	outlive(2 * renewed)
	left, err := home.sites[0].PTTL(t.Context(), key).Result()
	must(t, err)
	return left > renewed
}

func takenBeforeItsEnd(t *testing.T, home *bench, s Spec, key string) bool {
	const ttl = time.Second
	a, b := home.pair(t, s)
	grant(t, a, key, ttl)
	outlive(ttl * 6 / 10)
	_, err := b.Acquire(t.Context(), key, ttl)
	return err == nil
}

// believesInItsSuccessor lets the lock change hands within an acquisition.
func believesInItsSuccessor(t *testing.T, home *bench, s Spec, key string) bool {
	e := home.env()
	b := open(t, s, e)
	changed, second := false, error(nil)
	change := func() {
		changed = true
		_, _ = b.Acquire(t.Context(), key, briefly)
		outlive(2 * briefly)
		_, second = b.Acquire(t.Context(), key, 10*time.Second)
	}
	meanwhile(&e, change)
	_, first := open(t, s, e).Acquire(t.Context(), key, 10*time.Second)
	if !changed {
		change()
	}
	return first == nil && second == nil
}
