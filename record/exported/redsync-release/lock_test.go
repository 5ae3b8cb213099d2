// exclusion: two workers held the lock at once, 4 times in 232 holds; w05 and w06 at 0.662083 s: false-release
//
//	w05 was granted hold 5.81 of page 0 at 0.261213 s for 400 ms counted from 0.260387 s
//	so no other worker may hold it before 0.658387 s, and it was released at 0.784151 s
//	w06 was granted hold 6.331 of page 0 at 0.662083 s for 400 ms counted from 0.659841 s
//	w05 was told that its release at 0.784151 s had succeeded, but it had not the lock then, and no other lost it:
//	nothing was released
//	the fault stall-worker from 0.261272 s to 0.782527 s: held w05 when it had just been granted the lock for 520ms
//	the fault stall-worker from 0.600165 s to 1.185161 s: held w06 between load and store for 520ms
//
// Written by Hammerlock (verify export --test) of exec:redsync@v4.0.3:
//
//	bin/verify --topology single --lock exec:bin/record/redsync@v4.0.3 --scenario late-holder --seed 1
//
// The test tells the story more slowly. It needs a redis-server on the PATH, and nothing of Hammerlock. Each client
// speaks to the server through a proxy of its own, which holds, cuts or refuses the messages that the story names. The
// test fails if two clients hold the lock at once, or if a call succeeds that must be refused.
package lock_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
)

import (
	"errors"

	client "github.com/go-redis/redis/v8"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v8"
)

type lock struct {
	rs *redsync.Redsync
	m  *redsync.Mutex
}

func connect(addr string) *lock {
	c := client.NewClient(&client.Options{Addr: addr, MaxRetries: -1, ReadTimeout: -1})
	return &lock{rs: redsync.New(goredis.NewPool(c))}
}

func (l *lock) acquire(ctx context.Context, key string, lease time.Duration) error {
	l.m = l.rs.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1))
	return l.m.LockContext(ctx)
}

func (l *lock) extend(ctx context.Context, _ time.Duration) error {
	return said(l.m.ExtendContext(ctx))
}
func (l *lock) release(ctx context.Context) error { return said(l.m.UnlockContext(ctx)) }

func said(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("no")
	}
	return err
}

const (
	lease  = 2000 * time.Millisecond
	linger = 0 * time.Millisecond // by how much longer the library lets a lease last
	owned  = true                 // a release says whether the lock was still the client's
)

var story = []struct {
	at             time.Duration // ms
	who, do, fault string
}{
	{0, "a", "acquire", ""},
	{1997, "b", "acquire", ""},
	{2618, "a", "release", ""},
	{2618, "c", "acquire", ""},
}

func TestFalseRelease(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "")
	if server.Dir = t.TempDir(); server.Start() != nil {
		t.Fatal("there is no redis-server on the PATH")
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	all := map[string]*actor{}
	for _, s := range story {
		if all[s.who] == nil {
			all[s.who] = newActor(t, s.who, free.Addr().String())
		}
	}
	begun := time.Now()
	for _, s := range story {
		time.Sleep(time.Until(begun.Add(s.at * time.Millisecond)))
		a := all[s.who]
		f := a.next(s.fault)
		if a.said = "held"; s.do != "go on" {
			a.done = make(chan struct{})
			go a.call(t, s.do, f, all)
		}
		select {
		case <-a.done:
		case <-f.held:
		}
		t.Logf("%4d ms: %s: %s, %s %s", time.Since(begun).Milliseconds(), s.who, s.do, a.said, s.fault)
	}
	for _, a := range all {
		a.next("")
	}
}

// actor is a client, what it believes, and the proxy through which it speaks to the server.
type actor struct {
	name, said         string
	lock               *lock
	since, until, over time.Time // granted; it may believe in the lock before then; the server has forgotten it by then
	done               chan struct{}

	mu    sync.Mutex
	fault *fault
}

func newActor(t *testing.T, name, server string) *actor {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	a := &actor{name: name, fault: &fault{}}
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go a.serve(conn, server)
		}
	}()
	a.lock = connect(l.Addr().String())
	ctx := context.Background() // the server is to know all scripts before the story begins
	if err := a.lock.acquire(ctx, "warm-"+name, lease); err != nil {
		t.Fatal(err)
	}
	_, _ = a.lock.extend(ctx, lease), a.lock.release(ctx)
	return a
}

var judging sync.Mutex

func (a *actor) call(t *testing.T, do string, f *fault, all map[string]*actor) {
	defer close(a.done)
	called, err := a.try(do)
	for end := called.Add(lease / 10); do == "acquire" && err != nil && f.way == "" && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond) // a lease may end a moment later than in the story
		called, err = a.try(do)
	}
	judging.Lock()
	defer judging.Unlock()
	if a.said = "no"; err != nil {
		if f.what == "must" {
			t.Errorf("%s must be granted the lock: no client holds it any more (%v)", a.name, err)
		}
		return
	}
	now, until := time.Now(), called.Add(lease)
	if a.said = "yes"; lease == 0 {
		until = now.Add(time.Hour)
	}
	for _, b := range all {
		at := do != "release" && now.Before(until) || do == "release" && owned && b.since.Before(called)
		if b != a && now.Before(b.until) && at {
			t.Errorf("%s: the %s must be refused: %s holds the lock for %v more", a.name, do, b.name, b.until.Sub(now))
		}
	}
	if do == "extend" && lease > 0 && called.After(a.over) {
		t.Errorf("%s: the extend must be refused: its lease has been over for %v", a.name, called.Sub(a.over))
	}
	if do != "release" {
		a.since, a.until, a.over = now, until, now.Add(lease+linger)
	}
}

func (a *actor) try(do string) (called time.Time, err error) {
	called = time.Now()
	switch ctx := context.Background(); do {
	case "acquire":
		err = a.lock.acquire(ctx, "story", lease)
	case "extend":
		err = a.lock.extend(ctx, lease)
	case "release":
		judging.Lock()
		a.until = time.Time{}
		judging.Unlock()
		err = a.lock.release(ctx)
	}
	return called, err
}

// fault is what happens to the n-th message of a call, one way or the other, as in "late reply 2".
type fault struct {
	what, way  string
	n, seen    int
	held, open chan struct{}
}

// next says what happens next, and lets go on what is held.
func (a *actor) next(text string) *fault {
	f := &fault{held: make(chan struct{}), open: make(chan struct{})}
	fmt.Sscanf(text, "%s %s %d", &f.what, &f.way, &f.n)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fault.open != nil {
		close(a.fault.open)
	}
	a.fault = f
	return f
}

// setUp begins the messages that make a connection ready.
var setUp = regexp.MustCompile(`(?i)^\*\d+\r\n\$\d+\r\n(hello|client|auth|select|ping|info|command)\r\n`)

// serve hands on what a client and the server say. A message comes in one piece, for commands are short and wait for
// their replies.
func (a *actor) serve(client net.Conn, addr string) {
	server, err := net.Dial("tcp", addr)
	for ; err != nil; server, err = net.Dial("tcp", addr) {
		time.Sleep(10 * time.Millisecond) // it is about to start
	}
	quiet := false // the last request makes the connection ready
	hand := func(from, to net.Conn, way string) {
		defer from.Close()
		defer to.Close()
		buf := make([]byte, 1<<16)
		for n, err := from.Read(buf); err == nil; n, err = from.Read(buf) {
			a.mu.Lock()
			if way == "request" {
				quiet = setUp.Match(buf[:n])
			}
			f := a.fault
			if f.way == way && !quiet {
				f.seen++
			}
			hit := f.way == way && !quiet && f.seen == f.n
			a.mu.Unlock()
			switch {
			case hit && f.what == "late":
				close(f.held)
				<-f.open
			case hit && f.what == "error":
				fmt.Fprint(from, "-LOADING Redis is loading the dataset in memory\r\n")
				continue
			case hit:
				return
			}
			to.Write(buf[:n])
		}
	}
	go hand(server, client, "reply")
	hand(client, server, "request")
}
