// These tests show how a lock of kvtools/redis behaves after a failed renewal, and with a lease of less than a
// second. They need a redis-server on the PATH.
package unlock_test

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/kvtools/redis"
	"github.com/kvtools/valkeyrie/store"
	client "github.com/redis/go-redis/v9"
)

// start serves until the test is over.
func start(t *testing.T) (*redis.Store, *client.Client) {
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
	c := client.NewClient(&client.Options{Addr: free.Addr().String()})
	for c.Ping(t.Context()).Err() != nil {
		time.Sleep(10 * time.Millisecond)
	}
	s, err := redis.NewWithCodec(t.Context(), []string{free.Addr().String()}, nil, &redis.JSONCodec{})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestUnlockReturnsAfterARenewalThatFailed(t *testing.T) {
	s, c := start(t)
	l, _ := s.NewLock(t.Context(), "k", &store.LockOptions{TTL: time.Second})
	held, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), "k")
	<-held // the renewal has found that the lock is lost
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Unlock(ctx) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Error("Unlock has not returned after 3 s, though its context ended after 1 s")
	}
}

func TestALeaseOfLessThanASecondEnds(t *testing.T) {
	s, c := start(t)
	l, _ := s.NewLock(t.Context(), "k", &store.LockOptions{TTL: 600 * time.Millisecond})
	ctx, die := context.WithCancel(t.Context())
	if _, err := l.Lock(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(400 * time.Millisecond)
	die() // after one renewal
	time.Sleep(2 * time.Second)
	if left := c.PTTL(t.Context(), "k").Val(); left == -1 {
		t.Error("the holder died two seconds ago, its lease was 600 ms, and the key never expires")
	}
}
