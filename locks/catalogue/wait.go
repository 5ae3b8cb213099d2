package catalogue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/locks"
	"hammerlock/topologies"
)

var (
	wait = replicated("wait", "all replicas have it",
		"the replica that is promoted has not lost what it acknowledged; all replicas are there",
		func(copies int) int { return copies })
	waitOne = replicated("wait-one", "one replica has it",
		"the replica that is promoted is one that acknowledged it, and has not lost it",
		func(copies int) int { return min(copies, 1) })
)

// replicated describes a lock that is granted only if enough replicas have the key, as the command WAIT tells.
func replicated(name, until, assumes string, of func(copies int) int) locks.Spec {
	return locks.Spec{
		Name: name,
		Doc: "lease that counts as granted when WAIT on the same connection says that " + until +
			"; undone otherwise",
		Source:  "redis.io, WAIT: safety; Kingsbury, Jepsen: Redis, on what WAIT does not promise",
		Sites:   locks.OneSite,
		Assumes: "as lease; " + assumes,
		Claims:  lease.Claims,
		Open: func(e locks.Env) (locks.Lock, error) {
			if len(e.Places) != 1 {
				return nil, fmt.Errorf("%w: %s asks how many replicas there are, and this server does not say",
					locks.ErrServer, name)
			}
			return &waitLock{leaseLock{e.Sites[0]}, of(e.Places[0].Copies())}, nil
		},
	}
}

type waitLock struct {
	leaseLock
	replicas int // number of replicas that must have a grant
}

// errReplicas means that too few replicas have the key, so the grant was undone.
var errReplicas = errors.New("too few replicas have it")

func (l *waitLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	conn, err := l.conn(ctx, key)
	if err != nil {
		return lease, err
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	call := time.Now()
	if err := setNX(ctx, conn, key, lease.Token, ttl); err != nil {
		return lease, err
	}
	if err := l.copied(ctx, conn, ttl); err != nil {
		return lease, l.undo(ctx, conn, lease, err)
	}
	lease.Until = locks.Until(call, ttl)
	if !time.Now().Before(lease.Until) {
		return lease, l.undo(ctx, conn, lease, errReplicas)
	}
	return lease, nil
}

// copied waits until the replicas have this connection's writes, but at most for siteTimeout. It returns errReplicas
// if too few replicas have them.
func (l *waitLock) copied(ctx context.Context, conn *redis.Conn, ttl time.Duration) error {
	if l.replicas == 0 {
		return nil
	}
	n, err := conn.Wait(ctx, l.replicas, siteTimeout(ttl)).Result()
	if err == nil && int(n) < l.replicas {
		return fmt.Errorf("%d of %d: %w", n, l.replicas, errReplicas)
	}
	return locks.AfterGrant(err)
}

// undo releases the grant over the same connection. It returns the error for the whole try; why is the reason to
// undo it.
func (l *waitLock) undo(ctx context.Context, conn *redis.Conn, lease locks.Lease, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxSiteTimeout)
	defer cancel()
	if err := deleteOwned(ctx, conn, lease.Key, lease.Token); err != nil && !errors.Is(err, locks.ErrLost) {
		return errors.Join(locks.AfterGrant(why), err)
	}
	if errors.Is(why, errReplicas) {
		return fmt.Errorf("%w: %w", why, locks.ErrQuorum)
	}
	return why
}

// Extend returns an error and the old deadline if too few replicas have the extension.
func (l *waitLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	conn, err := l.conn(ctx, lease.Key)
	if err != nil {
		return lease, err
	}
	defer func() { _ = conn.Close() }() // returns the connection to the pool
	call := time.Now()
	if err := extendOwned(ctx, conn, lease.Key, lease.Token, ttl); err != nil {
		return lease, err
	}
	return from(lease, call, ttl, l.copied(ctx, conn, ttl))
}

// conn returns one connection to the primary of the key, because WAIT only covers the writes of its own connection.
func (l *waitLock) conn(ctx context.Context, key string) (*redis.Conn, error) {
	switch c := l.client.(type) {
	case *redis.Client:
		return c.Conn(), nil
	case *redis.ClusterClient:
		node, err := c.MasterForKey(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", topologies.ErrUnreachable, err)
		}
		return node.Conn(), nil
	default:
		return nil, fmt.Errorf("%w: no single connection from %T", locks.ErrServer, c)
	}
}
