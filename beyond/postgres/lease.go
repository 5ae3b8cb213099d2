package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hammerlock/history"
	"hammerlock/locks"
)

var lease = locks.Spec{
	Name:    "pg-lease",
	Doc:     "a row with token, expiry and fence: UPDATE .. WHERE it has expired, by the server's clock",
	Source:  "PostgreSQL, UPDATE; Kleppmann, How to do distributed locking: fencing tokens",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: "the server keeps what it has committed, and its clock goes as fast as the others'; the holder is done before Until",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &leaseLock{s, map[string]bool{}, releaseOwned}, err
	},
}

var leaseByName = locks.Spec{
	Name:   "pg-lease-by-name",
	Doc:    "pg-lease, but a release frees the row, whoever holds it",
	Source: "the UPDATE .. SET expires = NULL WHERE name of many lock tables",
	Sites:  locks.OneSite,
	Engine: engineName,
	Broken: "a holder that is late frees the lock of the next one",
	Caught: []locks.Symptom{{Cause: "foreign-release", Fault: "stall-worker"}},
	Claims: lease.Claims,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &leaseLock{s, map[string]bool{}, releaseByName}, err
	},
}

// The statements. clock_timestamp is read when the row is this transaction's: it goes on within one. An UPDATE that finds the lease
// to be another's locks nothing. INSERT .. ON CONFLICT .. WHERE locks the row to look at it: with 16 waiters, releases came so late
// behind them that the lease was over; and what it inserts has an expiry of before the wait.
const (
	makeLease = `INSERT INTO leases VALUES ($1, '', '-infinity', 0) ON CONFLICT DO NOTHING`
	takeLease = `UPDATE leases SET token = $2, expires = clock_timestamp() + make_interval(secs => $3), fence = fence + 1
		WHERE name = $1 AND expires <= clock_timestamp() RETURNING fence`
	extendLease = `UPDATE leases SET expires = clock_timestamp() + make_interval(secs => $3)
		WHERE name = $1 AND token = $2 AND expires > clock_timestamp()`
	releaseOwned = `UPDATE leases SET token = '', expires = '-infinity'
		WHERE name = $1 AND token = $2 AND expires > clock_timestamp()`
	releaseByName = `UPDATE leases SET token = '', expires = '-infinity' WHERE name = $1 AND $2 <> '' AND expires > clock_timestamp()`
)

type leaseLock struct {
	*session
	made    map[string]bool // rows
	release string
}

func (l *leaseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	conn, err := l.row(ctx, l.made, makeLease, key)
	if err != nil {
		return h, err
	}
	err = conn.QueryRow(ctx, takeLease, key, h.Token, ttl.Seconds()).Scan(&h.Fence)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, locks.ErrBusy
	}
	h.Until = locks.Until(call, ttl)
	return h, outcome(err)
}

func (l *leaseLock) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.own(ctx, extendLease, h.Key, h.Token, ttl.Seconds())
	if err == nil {
		h.Until = locks.Until(call, ttl)
	}
	return h, err
}

func (l *leaseLock) Release(ctx context.Context, h locks.Lease) error {
	return l.own(ctx, l.release, h.Key, h.Token)
}

// own changes the row of a hold: locks.ErrLost if it is no longer there.
func (s *session) own(ctx context.Context, statement string, args ...any) error {
	conn, err := s.get(ctx)
	if err != nil {
		return err
	}
	done, err := conn.Exec(ctx, statement, args...)
	if err == nil && done.RowsAffected() == 0 {
		return locks.ErrLost
	}
	return outcome(err)
}
