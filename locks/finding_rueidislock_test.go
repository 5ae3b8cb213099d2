package locks

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

	"hammerlock/topologies"
)

// rueidisOptions connects to a server as links want it: they know clients by their sources.
func rueidisOptions(site *topologies.Site, source int) rueidis.ClientOption {
	dial := site.Dialer(source)
	return rueidis.ClientOption{
		InitAddress: site.Addrs(), Username: site.Access().User, Password: site.Password(), ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dial(ctx, "tcp", addr)
		},
	}
}

// locker is a locker as an application makes it; links know it by its source.
func (p *people) locker(t *testing.T, source int, o rueidislock.LockerOption) rueidislock.Locker {
	t.Helper()
	uncached := o.ClientOption.DisableCache
	o.ClientOption = rueidisOptions(p.top.Sites[0], source)
	o.ClientOption.DisableCache = uncached
	l, err := rueidislock.NewLocker(o)
	must(t, err)
	t.Cleanup(l.Close)
	_, release := take(t, l, fmt.Sprint("warm", source)) // the server knows the scripts
	release()
	return l
}

// take waits for a lock. On a busy machine an answer may come after the library has stopped to wait for it: then it may
// sleep for ever, and is called off and asked again.
func take(t *testing.T, l rueidislock.Locker, key string) (context.Context, context.CancelFunc) {
	t.Helper()
	return takeAsking(t, l, key, 5*time.Second)
}

// takeAsking asks again each time that a while has gone by.
func takeAsking(t *testing.T, l rueidislock.Locker, key string, again time.Duration) (context.Context, context.CancelFunc) {
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

// untilAnswered tries a lock that nobody is to refuse. On a busy machine an answer comes later than the library waits for it.
func untilAnswered(t *testing.T, try func(context.Context, string) (context.Context, context.CancelFunc, error), key string) (held context.Context, release context.CancelFunc) {
	t.Helper()
	var err error
	for range 30 {
		if held, release, err = try(t.Context(), key); !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	must(t, err)
	return held, release
}

// lockerKinds are the options that change how a locker hears of changes.
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
	const validity = 2 * time.Second
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Links: true})
			o.KeyValidity = validity
			a, b := p.locker(t, 1, o), p.locker(t, 2, o)
			held, release := take(t, a, "k")
			start := time.Now()
			heal := p.apply(t, topologies.Rule{
				From: []topologies.Party{topologies.ClientParty(1)}, To: []topologies.Party{topologies.AllNodes},
				Effect: topologies.Drop,
			})
			_, other := takeAsking(t, b, "k", validity/4)
			granted := time.Now()
			if held.Err() != nil {
				t.Error("the holder was told in time")
			}
			<-held.Done()
			both := time.Since(granted)
			if both < validity/8 { // the other one asks four times a lease, and a busy machine is late
				t.Errorf("two holders for %v only", both)
			}
			t.Logf("granted to another after %v, two holders for %v", granted.Sub(start), both)
			heal()
			other()
			release()
		})
	}
}

// TestFindingRueidislockExtendsAllTheTime: an extension is a change, a change is told to who made it, and who is told of
// a change extends. It is not parallel: it keeps the server and a core busy.
func TestFindingRueidislockExtendsAllTheTime(t *testing.T) {
	extended := map[string]int{}
	for _, name := range []string{"default", "NoLoopTracking", "DisableCache"} {
		o := lockerKinds[name]
		p := newPeople(t, "single", topologies.Options{})
		o.KeyValidity = time.Second
		l := p.locker(t, 0, o)
		_, release := take(t, l, "k")
		outlive(1300 * time.Millisecond)
		extended[name] = p.calls(t)["pexpireat"]
		release()
	}
	for name, n := range extended {
		if storm := n > 100; storm != (name == "default") {
			t.Errorf("%s: %d extensions in 1.3 s of a hold that needs 6", name, n)
		}
	}
	t.Log(extended)
}

// TestFindingRueidislockRoundTripsOver20ms: every answer comes after the library has stopped to wait for it.
func TestFindingRueidislockRoundTripsOver20ms(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Links: true})
			l := p.locker(t, 1, o)
			heal := p.apply(t, p.slow(60*time.Millisecond))
			granted := 0
			for i := range 20 {
				_, release, err := l.TryWithContext(t.Context(), fmt.Sprint("free", i))
				if err == nil {
					granted++
					release()
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
			if patient := o.TryNextAfter > 0; patient != (granted > 10) { // a busy machine can hide a late answer
				t.Errorf("%d of 20 free locks granted", granted)
			}
			before := p.calls(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, release, err := l.WithContext(ctx, "k")
			if err == nil {
				release()
			}
			t.Logf("%d of 20 free locks granted; WithContext: %v after %d SETs", granted, err, p.calls(t)["set"]-before["set"])
			heal()
		})
	}
}

// TestFindingRueidislockSleepsForEver: the server hangs for a tenth of a second while the only client asks for a lock
// that nobody has.
func TestFindingRueidislockSleepsForEver(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{})
			l := p.locker(t, 1, o)
			must(t, p.top.Nodes[0].Pause())
			done := make(chan struct{})
			time.AfterFunc(150*time.Millisecond, func() { defer close(done); must(t, p.top.Nodes[0].Resume()) })
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			var release context.CancelFunc
			var err error
			d := took(func() { _, release, err = l.WithContext(ctx, "k") })
			<-done
			sleeps := o.NoLoopTracking && o.TryNextAfter == 0
			if forever := err != nil; forever != sleeps {
				t.Errorf("%v after %v", err, d)
			}
			for i := range 3 {
				if left := p.left(t, 0, fmt.Sprintf("rueidislock:%d:k", i)); err != nil && left >= 0 {
					t.Errorf("key %d has %v left", i, left)
				}
			}
			if err == nil {
				release()
			}
			t.Logf("WithContext on a free lock: %v after %v", err, d)
		})
	}
}

// TestFindingRueidislockServerClockAhead: deadlines are times of the client's clock, and past ones are granted.
func TestFindingRueidislockServerClockAhead(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{Clock: true})
			a, b := p.locker(t, 0, o), p.locker(t, 1, o)
			must(t, p.top.Nodes[0].SetClock(6*time.Second, 1))
			first, release := untilAnswered(t, a.TryWithContext, "k")
			second, release2 := untilAnswered(t, b.TryWithContext, "k")
			both := took(func() {
				select {
				case <-first.Done():
				case <-second.Done():
				}
			})
			if late := both > time.Second; late != o.ClientOption.DisableCache {
				t.Errorf("two holders for %v", both)
			}
			t.Logf("two holders for %v", both)
			release()
			release2()
		})
	}
}

func TestFindingRueidislockForceOverlaps(t *testing.T) {
	t.Parallel()
	for name, o := range lockerKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeople(t, "single", topologies.Options{})
			a, b := p.locker(t, 0, o), p.locker(t, 1, o)
			first, release := take(t, a, "k")
			_, release2 := untilAnswered(t, b.ForceWithContext, "k")
			both := took(func() { <-first.Done() })
			if late := both > time.Second; late != o.ClientOption.DisableCache {
				t.Errorf("two holders for %v", both)
			}
			t.Logf("two holders for %v", both)
			release()
			release2()
		})
	}
}

func TestFindingRueidislockTryWaitsForAHungServer(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{})
	l := p.locker(t, 0, rueidislock.LockerOption{NoLoopTracking: true})
	_, release := take(t, l, "held")
	p.pause(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var err error
	if heeded := took(func() { _, _, err = l.TryWithContext(ctx, "k") }); err == nil || heeded > 2*time.Second {
		t.Errorf("try with a deadline: %v after %v", err, heeded)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	try := took(func() { _, _, err = l.TryWithContext(ctx, "k") })
	if err == nil || try < 2*time.Second {
		t.Errorf("try: %v after %v", err, try)
	}
	t.Logf("try: %v after %v, though its context was canceled after 100 ms; release after %v more", err, try, took(release))
}

// TestFindingRueidislockLostReplyIsAnothersLock: the client sends the command again and meets its own key.
func TestFindingRueidislockLostReplyIsAnothersLock(t *testing.T) {
	t.Parallel()
	p := newPeople(t, "single", topologies.Options{Links: true})
	o := rueidislock.LockerOption{NoLoopTracking: true, TryNextAfter: time.Second}
	l := p.locker(t, 1, o)
	p.apply(t, p.loseReply())
	_, _, err := l.TryWithContext(t.Context(), "k")
	left := p.left(t, 0, "rueidislock:0:k")
	if !errors.Is(err, rueidislock.ErrNotLocked) || left < 2*time.Second {
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
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: rueidisOptions(p.top.Sites[0], 0), NoLoopTracking: true})
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
