package catalogue

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"hammerlock/internal/live"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

// rueidisOptions connects to a server through its link, which identifies clients by their sources.
func rueidisOptions(site *topologies.Site, source int) rueidis.ClientOption {
	dial := site.Dialer(source)
	return rueidis.ClientOption{
		InitAddress: site.Addrs(), Username: site.Access().User, Password: site.Password(), ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx, "tcp", addr)
		},
	}
}

// locker makes a locker as an application does; links identify it by its source.
func (p *people) locker(t *testing.T, source int, o rueidislock.LockerOption) rueidislock.Locker {
	t.Helper()
	uncached := o.ClientOption.DisableCache
	o.ClientOption = rueidisOptions(p.top.Sites[0], source)
	o.ClientOption.DisableCache = uncached
	l, err := rueidislock.NewLocker(o)
	must(t, err)
	t.Cleanup(l.Close)
	_, release := take(t, l, fmt.Sprint("warm", source)) // makes the server know the scripts
	release()
	return l
}

// take waits for a lock. If a reply comes after the library has stopped waiting for it, the library may sleep for
// ever. This happens on a busy machine, so take cancels a long call and repeats it.
func take(t *testing.T, l rueidislock.Locker, key string) (context.Context, context.CancelFunc) {
	t.Helper()
	return takeAsking(t, l, key, 5*time.Second)
}

// takeAsking repeats the call at intervals of again.
func takeAsking(t *testing.T, l rueidislock.Locker, key string, again time.Duration) (context.Context,
	context.CancelFunc) {
	t.Helper()
	for range 30 {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		late := time.AfterFunc(again, cancel)
		held, release, err := l.WithContext(ctx, key)
		if late.Stop() {
			must(t, err)
			return held, release
		}
		if err == nil {
			release()
		}
	}
	t.Fatalf("%s was never granted", key)
	return nil, nil
}

// untilAnswered takes a free lock. It tries again if a reply came too late for the library, as on a busy machine.
func untilAnswered(t *testing.T, try func(context.Context, string) (context.Context, context.CancelFunc, error),
	key string) (held context.Context, release context.CancelFunc) {
	t.Helper()
	var err error
	late := false
	live.Wait(t, key, func() bool {
		held, release, err = try(t.Context(), key)
		late = late || errors.Is(err, context.DeadlineExceeded) // keys that the try has left may refuse the next try
		return err == nil || !late
	})
	must(t, err)
	return held, release
}

// lockerKinds are the options that decide how a locker learns of changes.
var lockerKinds = map[string]rueidislock.LockerOption{
	"default":             {},
	"NoLoopTracking":      {NoLoopTracking: true},
	"as in the README":    {NoLoopTracking: true, KeyMajority: 1},
	"DisableCache":        uncached(),
	"NoLoopTracking, 1 s": {NoLoopTracking: true, TryNextAfter: time.Second},
}

func uncached() (o rueidislock.LockerOption) {
	o.ClientOption.DisableCache = true
	return o
}

func TestFindingRueidislockPartitionedHolderIsToldTooLate(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Links: true})
			p.played(t, func(home *stage, key string) {
				home.watch(t, p.clients[0])
				o.KeyValidity = 5 * home.renewed
				a, b := p.locker(t, 1, o), p.locker(t, 2, o)
				held, release := take(t, a, key)
				heal := p.apply(t, links.Rule{
					From: []links.Party{links.ClientParty(1)}, To: []links.Party{links.AllNodes},
					Effect: links.Drop,
				})
				_, other := takeAsking(t, b, key, o.KeyValidity/4)
				if held.Err() != nil && !home.slow(o.KeyValidity/8) {
					t.Error("the holder was told before another one had the lock")
				}
				<-held.Done()
				heal()
				other()
				release()
			})
		})
	}
}

// TestFindingRueidislockExtendsAllTheTime: each extension changes the key. The server reports the change to the
// client that made it, and this client then extends again. The test is not parallel, because it keeps the server and
// a core busy.
func TestFindingRueidislockExtendsAllTheTime(t *testing.T) {
	for _, name := range []string{"default", "NoLoopTracking", "DisableCache"} {
		o := lockerKinds[name]
		p := newPeople(t, "single", topologies.Options{})
		o.KeyValidity = time.Second
		l := p.locker(t, 0, o)
		held, release := take(t, l, "k")
		if name == "default" {
			live.Wait(t, "a hundred extensions", func() bool {
				if held.Err() != nil { // a paused machine has lost the lock
					release()
					held, release = take(t, l, "k")
				}
				return p.calls(t)["pexpireat"] > 100
			})
		} else if outlive(700 * time.Millisecond); p.calls(t)["pexpireat"] > 100 {
			t.Errorf("%s: %d extensions of a hold that needs 3", name, p.calls(t)["pexpireat"])
		}
		release()
	}
}

// TestFindingRueidislockRoundTripsOver20ms: every reply comes when the library no longer waits for it.
func TestFindingRueidislockRoundTripsOver20ms(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Links: true})
			l := p.locker(t, 1, o)
			heal := p.apply(t, p.slow(60*time.Millisecond))
			granted := 0
			for i := range 8 {
				_, release, err := l.TryWithContext(t.Context(), fmt.Sprint("free", i))
				if err == nil {
					granted++
					release()
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			if patient := o.TryNextAfter > 0; patient != (granted > 4) { // a busy machine can hide a late reply
				t.Errorf("%d of 8 free locks granted", granted)
			}
			before := p.calls(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, release, err := l.WithContext(ctx, "k")
			if err == nil {
				release()
			}
			t.Logf("%d of 8 free locks granted; WithContext: %v after %d SETs", granted, err,
				p.calls(t)["set"]-before["set"])
			heal()
		})
	}
}

// TestFindingRueidislockSleepsForEver: the server hangs for 0.1 s while the only client requests a free lock.
func TestFindingRueidislockSleepsForEver(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{})
			l := p.locker(t, 1, o)
			p.played(t, func(home *stage, key string) {
				sleeps(t, p, home, l, key, o.NoLoopTracking && o.TryNextAfter == 0)
			})
		})
	}
}

func sleeps(t *testing.T, p *people, home *stage, l rueidislock.Locker, key string, forEver bool) {
	patience := live.Deadline
	if forEver {
		patience = 4 * home.renewed
	}
	must(t, p.top.Nodes[0].Pause())
	var resumed time.Time
	done := make(chan struct{})
	time.AfterFunc(home.renewed/2, func() { defer close(done); resumed = time.Now(); must(t, p.top.Nodes[0].Resume()) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	call := time.Now()
	_, release, err := l.WithContext(ctx, key)
	if err == nil {
		release()
	}
	<-done
	if slept := err != nil; slept != forEver {
		if resumed.Before(call.Add(home.renewed / 4)) {
			home.undecided = "the server did not hang for long enough"
			return
		}
		t.Errorf("WithContext on a free lock: %v", err)
	}
	live.Wait(t, "that the lock is free", func() bool {
		free := true
		for i := range 3 {
			free = free && p.left(t, 0, fmt.Sprintf("rueidislock:%d:%s", i, key)) < 0
		}
		return free
	})
}

// TestFindingRueidislockServerClockAhead: the library computes deadlines by the client's clock. To a server whose
// clock is ahead, they lie in the past, and yet the lock counts as granted.
func TestFindingRueidislockServerClockAhead(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Clock: true})
			o.KeyValidity = long
			a, b := p.locker(t, 0, o), p.locker(t, 1, o)
			must(t, p.top.Nodes[0].SetClock(2*long, 1))
			first, release := untilAnswered(t, a.TryWithContext, "k")
			second, release2 := untilAnswered(t, b.TryWithContext, "k")
			toldOnlyWithTracking(t, o, func() bool { return first.Err() != nil || second.Err() != nil })
			release()
			release2()
		})
	}
}

// toldOnlyWithTracking tests that a holder learns of another holder, or renews after half of the validity.
func toldOnlyWithTracking(t *testing.T, o rueidislock.LockerOption, told func() bool) {
	t.Helper()
	if !o.ClientOption.DisableCache {
		live.Wait(t, "that a holder is told", told)
	} else if outlive(300 * time.Millisecond); told() {
		t.Error("a holder was told")
	}
}

func TestFindingRueidislockForceOverlaps(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{})
			o.KeyValidity = long
			a, b := p.locker(t, 0, o), p.locker(t, 1, o)
			first, release := take(t, a, "k")
			_, release2 := untilAnswered(t, b.ForceWithContext, "k")
			toldOnlyWithTracking(t, o, func() bool { return first.Err() != nil })
			release()
			release2()
		})
	}
}

func TestFindingRueidislockTryWaitsForAHungServer(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	const validity = 4 * time.Second
	l := p.locker(t, 0, rueidislock.LockerOption{NoLoopTracking: true, KeyValidity: validity})
	_, release := take(t, l, "held")
	p.pause(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	call := time.Now()
	if _, _, err := l.TryWithContext(ctx, "k"); err == nil || time.Now().Before(call.Add(validity/2)) {
		t.Errorf("a try, though its context was canceled: %v after %v", err, -time.Until(call))
	}
	release()
}

// TestFindingRueidislockLostReplyIsAnothersLock: the client sends the command again and finds its own key.
func TestFindingRueidislockLostReplyIsAnothersLock(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{Links: true})
	o := rueidislock.LockerOption{NoLoopTracking: true, TryNextAfter: live.Deadline, KeyValidity: long}
	l := p.locker(t, 1, o)
	p.apply(t, p.loseReply())
	_, _, err := l.TryWithContext(t.Context(), "k")
	left := p.left(t, 0, "rueidislock:0:k")
	if !errors.Is(err, rueidislock.ErrNotLocked) || left < long/2 {
		t.Errorf("try: %v, %v left", err, left)
	}
	t.Logf("try: %v; %v left", err, left)
	if _, _, err := l.TryWithContext(t.Context(), "k"); !errors.Is(err, rueidislock.ErrNotLocked) {
		t.Errorf("again: %v", err)
	}
}

func TestFindingRueidislockCloseLeavesItsKeys(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	b := p.locker(t, 0, rueidislock.LockerOption{NoLoopTracking: true})
	refused := 0
	for i := range 10 {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: rueidisOptions(p.top.Sites[0], 0),
			NoLoopTracking: true})
		must(t, err)
		key := fmt.Sprint(i)
		held, release := take(t, l, key)
		l.Close()
		<-held.Done()
		outlive(50 * time.Millisecond)
		if _, release, err := b.TryWithContext(t.Context(), key); err != nil {
			refused++
		} else {
			release()
		}
		release()
	}
	t.Logf("%d of 10 locks are still taken after Close", refused)
	if refused == 0 {
		t.Error("Close gives everything back")
	}
}
