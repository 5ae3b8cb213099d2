package database

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"hammerlock/history"
	"hammerlock/locks"
)

// Leases has the statements of a lock that is a table row with token, expiry and fence. The expiry is a time of the
// server's clock.
type Leases struct {
	Make string // makes the lock's row if it does not exist; argument: name
	// Take enters the hold h in the row if the row's lease has expired, and returns the fence. Otherwise it returns
	// sql.ErrNoRows.
	Take    func(ctx context.Context, conn Conn, h locks.Lease, ttl time.Duration) (fence int64, err error)
	Extend  string // arguments: TTL in microseconds, name, token; changes no row if another holder has the lock
	Release string // arguments: name, token; changes no row if another holder has the lock
}

// Lease returns the main lock of the topology.
func (s *Server) Lease() locks.Spec {
	return locks.Spec{
		Name:   s.Prefix + "lease",
		Doc:    "a row with token, expiry and fence: UPDATE .. WHERE it has expired, by the server's clock",
		Source: s.Manual + ", UPDATE; Kleppmann, How to do distributed locking: fencing tokens",
		Sites:  locks.OneSite,
		Engine: s.Engine,
		Assumes: "the server keeps what it has committed, and its clock goes as fast as the others'; " +
			"the holder is done before Until",
		Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true},
		Open:   s.Leased(s.Leases),
	}
}

// Leased opens a lock with these statements.
func (s *Server) Leased(by Leases) func(locks.Env) (locks.Lock, error) {
	return func(e locks.Env) (locks.Lock, error) {
		session, err := s.open(e)
		return &leaseLock{session, by, map[string]bool{}}, err
	}
}

type leaseLock struct {
	*Session
	by   Leases
	made map[string]bool // names of the locks whose row exists
}

func (l *leaseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	conn, err := l.row(ctx, l.made, l.by.Make, key)
	if err != nil {
		return h, err
	}
	h.Fence, err = l.by.Take(ctx, conn, h, ttl)
	if errors.Is(err, sql.ErrNoRows) {
		return h, locks.ErrBusy
	}
	h.Until = locks.Until(call, ttl)
	return h, l.server.Outcome(err)
}

func (l *leaseLock) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.Own(ctx, l.by.Extend, ttl.Microseconds(), h.Key, h.Token)
	if err == nil {
		h.Until = locks.Until(call, ttl)
	}
	return h, err
}

func (l *leaseLock) Release(ctx context.Context, h locks.Lease) error {
	return l.Own(ctx, l.by.Release, h.Key, h.Token)
}
