// How long a lock holds whose server answers every message within 40 ms. It needs a redis-server on the PATH.
package hold_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeylock"
)

const (
	lease = time.Second // extended after each half of it
	long  = 12 * time.Second
)

// start serves until the test is over, through a proxy that holds each answer for 40 ms.
func start(t *testing.T) (addr string) {
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
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	go func() {
		for c, err := proxy.Accept(); err == nil; c, err = proxy.Accept() {
			s, err := net.Dial("tcp", free.Addr().String())
			for ; err != nil; s, err = net.Dial("tcp", free.Addr().String()) {
				time.Sleep(10 * time.Millisecond)
			}
			go pass(c, s, 0)
			go pass(s, c, 40*time.Millisecond)
		}
	}()
	return proxy.Addr().String()
}

func pass(from, to net.Conn, late time.Duration) {
	for b := make([]byte, 1<<16); ; {
		n, err := from.Read(b)
		if err != nil {
			to.Close()
			return
		}
		time.Sleep(late)
		to.Write(b[:n])
	}
}

func holds(t *testing.T, hold context.Context, err error) {
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case <-hold.Done():
		t.Errorf("the hold was lost after %v: the server answered every message within 40 ms", time.Since(began))
	case <-time.After(long):
	}
}

func TestValkeylockHolds(t *testing.T) {
	l, err := valkeylock.NewLocker(valkeylock.LockerOption{
		ClientOption: valkey.ClientOption{InitAddress: []string{start(t)}, ForceSingleClient: true},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: lease, TryNextAfter: lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	hold, _, err := l.WithContext(t.Context(), "k")
	holds(t, hold, err)
}

func TestRueidislockHolds(t *testing.T) {
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{start(t)}, ForceSingleClient: true},
		KeyMajority:  1, NoLoopTracking: true, KeyValidity: lease, TryNextAfter: lease,
	})
	if err != nil {
		t.Fatal(err)
	}
	hold, _, err := l.WithContext(t.Context(), "k")
	holds(t, hold, err)
}
