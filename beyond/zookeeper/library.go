package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"hammerlock/beyond/proof"
	"hammerlock/history"
	"hammerlock/locks"
)

var library = onZooKeeper(locks.Spec{
	Name: "zookeeper-lock",
	Doc: "go-zookeeper/zk Lock; its holder heeds the events of the session: a broken connection, too, ends a hold. " +
		"Who has waited in vain, or met an error, ends the session: the library forgets the node that it leaves",
	Source:  "github.com/go-zookeeper/zk v1.0.4",
	Assumes: "a server that is cut off from the majority stops answering before sessions end; the holder heeds Lost",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Renews: true},
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		all, err := shareEndings(e)
		return &libraryLock{queueLock{env: e, all: all, heeds: true}}, err
	},
})

// libraryLock is one worker's lock. The library has no try without waiting.
type libraryLock struct{ queueLock }

// Acquire waits at most for callTimeout.
func (l *libraryLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireWithin(ctx, key, ttl, callTimeout)
}

func (l *libraryLock) AcquireWithin(ctx context.Context, key string, ttl, wait time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key}
	call := time.Now()
	s, err := l.within(ctx, ttl, true)
	if err != nil {
		return lease, err
	}
	token := strings.ToLower(rand.Text())
	lock := zk.NewLock(s.conn, directory(key), anybody)
	granted := make(chan error, 1)
	go func() { granted <- lock.LockWithData([]byte(token)) }() // ends with the session at the latest
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case err = <-granted:
	case <-waiting.Done():
		err = locks.ErrBusy
	}
	if err != nil {
		if errors.Is(err, locks.ErrBusy) && (s.conn.State() != zk.StateHasSession || s.lease.Left() < s.ttl/3) {
			err = errInDoubt // if the session is out of reach, so is its node in the queue
		}
		l.drop(true) // a possible grant ends with the session
		if !errors.Is(err, locks.ErrBusy) {
			err = fmt.Errorf("zookeeper: %w", err)
		}
		return lease, err
	}
	p := &place{token: token, session: s, unlock: lock.Unlock, hold: proof.NewHold(token)}
	lease.Token, lease.Spent, lease.Lost = token, s.ttl-time.Until(s.lease.Begin(p.hold, false)), p.hold.Lost
	if waited := time.Since(call); waited > 10*time.Millisecond {
		lease.Tried = waited // the library does not report the time of the grant; only the end is certain
	}
	l.held[token] = p
	return lease, nil
}
