package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"hammerlock/beyond/proof"
	"hammerlock/history"
	"hammerlock/locks"
)

var deaf = onZooKeeper(locks.Spec{
	Name:   "zookeeper-deaf",
	Doc:    "the recipe, whose holder does not watch its session",
	Source: recipe.Source + ", which do not mention the session",
	Broken: "a holder that was cut off goes on when its session has expired, beside the next",
	Expect: []locks.Expectation{{Cause: history.RenewalFailure, Scenario: "renewal-cut"}},
	Claims: recipe.Claims,
	Open:   func(e locks.Env) (locks.Lock, error) { return newQueue(e, false) },
})

var reuse = onZooKeeper(locks.Spec{
	Name: "zookeeper-reuse",
	Doc: "one ephemeral node with the worker's name; who loses its connection makes a new session, " +
		"and takes a node with its name for its own",
	Source: "Kafka issue KAFKA-1387, the same mistake with the node of a broker",
	Broken: "the node belongs to the session before, and ends with it: while its owner, as it thinks, goes on",
	Expect: []locks.Expectation{
		{Cause: history.RenewalFailure, Scenario: "renewal-cut"},
		{Cause: history.ForeignRelease, Scenario: "renewal-cut"},
		{Cause: history.FalseRelease, Scenario: "renewal-cut"},
	},
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true, Renews: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		all, err := shareEndings(e)
		return &reuseLock{queueLock{env: e, all: all}, fmt.Sprintf("%016x", e.Rand.Uint64()), 0}, err
	},
})

// reuseLock is a wrong lock: it identifies itself by the same name in all its sessions.
type reuseLock struct {
	queueLock
	name   string
	grants int
}

func (l *reuseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key}
	s, err := l.afresh(ctx, ttl)
	if err != nil {
		return lease, err
	}
	p := &place{token: l.token(), session: s, path: directory(key) + "/holder"}
	_, err = s.create(ctx, key, "holder", l.name, zk.FlagEphemeral)
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return l.doubt(lease, p, err)
	}
	var owner []byte
	stat, err := called(ctx, func() (stat *zk.Stat, err error) {
		owner, stat, err = s.conn.Get(p.path)
		return stat, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && string(owner) != l.name:
		return lease, locks.ErrBusy
	case err != nil:
		return l.doubt(lease, p, err)
	}
	p.hold = proof.NewHold(p.token)
	lease.Token, lease.Fence, lease.Spent = p.token, stat.Czxid, s.ttl-time.Until(s.lease.Begin(p.hold, false))
	l.held[p.token] = p
	return lease, nil
}

func (l *reuseLock) token() string {
	l.grants++
	return fmt.Sprintf("%s.%d", l.name, l.grants)
}

// afresh returns the worker's session. If the session has no connection, afresh abandons it and opens a new one.
func (l *reuseLock) afresh(ctx context.Context, ttl time.Duration) (*session, error) {
	if s := l.session; s != nil && s.conn.State() != zk.StateHasSession {
		l.drop(false)
	}
	return l.within(ctx, ttl, false)
}

// Release removes the node without a check of its owner.
func (l *reuseLock) Release(ctx context.Context, lease locks.Lease) error {
	if p, ok := l.held[lease.Token]; ok && p.session.conn.State() != zk.StateHasSession {
		s, err := l.afresh(ctx, p.session.ttl)
		if err != nil {
			return err
		}
		p.session.lease.Finish()
		p.session = s
		l.held[lease.Token] = p
	}
	return l.queueLock.Release(ctx, lease)
}

func (l *reuseLock) Wait(ctx context.Context, _ string) (history.Wake, error) {
	select {
	case <-time.After(2 * time.Millisecond):
		return history.Poll, nil
	case <-ctx.Done():
		return history.Poll, context.Cause(ctx)
	}
}
