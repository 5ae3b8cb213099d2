package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"math"
	"time"

	"hammerlock/beyond/database"
	"hammerlock/history"
	"hammerlock/locks"
)

var lease = locks.Spec{
	Name:    "my-lease",
	Doc:     "a row with token, expiry and fence: UPDATE .. WHERE it has expired, by the server's clock",
	Source:  "MySQL, UPDATE; Kleppmann, How to do distributed locking: fencing tokens",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: "the server keeps what it has committed, and its clock goes as fast as the others'; the holder is done before Until",
	Claims:  history.Claims{Excludes: true, Expires: true, Owned: true, Fences: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &leaseLock{s, map[string]bool{}}, err
	},
}

// The statements. SYSDATE is the time at which it is evaluated, which is when the row is locked; NOW would be that of the statement's
// beginning. The fence comes back in the answer to the UPDATE, as the number that was inserted last.
const (
	makeLease = `INSERT IGNORE INTO leases VALUES (?, '', '1970-01-02', 0)`
	takeLease = `UPDATE leases SET token = ?, expires = SYSDATE(6) + INTERVAL ? MICROSECOND, fence = LAST_INSERT_ID(fence + 1)
		WHERE name = ? AND expires <= SYSDATE(6)`
	extendLease = `UPDATE leases SET expires = SYSDATE(6) + INTERVAL ? MICROSECOND WHERE name = ? AND token = ? AND expires > SYSDATE(6)`
	freeLease   = `UPDATE leases SET token = '', expires = '1970-01-02' WHERE name = ? AND token = ? AND expires > SYSDATE(6)`
)

type leaseLock struct {
	*session
	made map[string]bool // rows
}

func (l *leaseLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	if err := l.row(ctx, l.made, makeLease, key); err != nil {
		return h, err
	}
	conn, err := l.get(ctx)
	if err != nil {
		return h, err
	}
	r, err := conn.ExecContext(ctx, takeLease, h.Token, ttl.Microseconds(), key)
	if err != nil {
		return h, outcome(err)
	}
	if rows, err := r.RowsAffected(); err == nil && rows == 0 {
		return h, locks.ErrBusy
	}
	h.Fence, err = r.LastInsertId()
	h.Until = locks.Until(call, ttl)
	return h, err
}

func (l *leaseLock) Extend(ctx context.Context, h locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := l.own(ctx, extendLease, ttl.Microseconds(), h.Key, h.Token)
	if err == nil {
		h.Until = locks.Until(call, ttl)
	}
	return h, err
}

func (l *leaseLock) Release(ctx context.Context, h locks.Lease) error {
	return l.own(ctx, freeLease, h.Key, h.Token)
}

// row makes a row that a lock needs, once.
func (s *session) row(ctx context.Context, made map[string]bool, statement, key string) error {
	if made[key] {
		return nil
	}
	if err := s.own(ctx, statement, key); err != nil && !errors.Is(err, locks.ErrLost) {
		return err
	}
	made[key] = true
	return nil
}

var getLock = locks.Spec{
	Name:    "my-get-lock",
	Doc:     "GET_LOCK and RELEASE_LOCK on a connection of the worker's own; waits in the server",
	Source:  "MySQL, Locking Functions",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Wakes: true},
	Session: true,
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &namedLock{pinned{session: s}}, err
	},
}

// pinned is a hold that the server ties to the connection it was granted on.
type pinned struct {
	*session
	token string    // of the present hold
	on    *sql.Conn // that it was granted on
}

func (p *pinned) holds(h locks.Lease) bool {
	return p.token == h.Token && p.on != nil && p.on == p.conn && p.on.Raw(func(c any) error { return alive(c) }) == nil
}

// Extend has nothing to lengthen: it asks whether the session is still there.
func (p *pinned) Extend(ctx context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	if !p.holds(h) {
		return h, locks.ErrLost
	}
	_, err := p.on.ExecContext(ctx, `DO 1`)
	return h, outcome(err)
}

type namedLock struct{ pinned }

func (l *namedLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireWithin(ctx, key, ttl, 0)
}

// AcquireWithin lets the server wait; it counts in seconds, with a fraction. A try that failed gives its connection up, for nobody
// knows whether that has the lock.
func (l *namedLock) AcquireWithin(ctx context.Context, key string, _, wait time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	conn, err := l.get(ctx)
	if err != nil {
		return h, err
	}
	var got sql.NullBool
	if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, ?)`, key, wait.Seconds()).Scan(&got); err != nil {
		l.drop()
		return h, outcome(err)
	}
	if !got.Bool {
		return h, locks.ErrBusy
	}
	l.token, l.on = h.Token, conn
	return h, nil
}

func (l *namedLock) Release(ctx context.Context, h locks.Lease) error {
	if !l.holds(h) {
		return locks.ErrLost
	}
	l.token = ""
	var freed sql.NullBool
	err := l.on.QueryRowContext(ctx, `SELECT RELEASE_LOCK(?)`, h.Key).Scan(&freed)
	if err == nil && !freed.Bool {
		return locks.ErrLost
	}
	return outcome(err)
}

var forUpdate = locks.Spec{
	Name:    "my-for-update",
	Doc:     "SELECT .. FOR UPDATE of the lock's row in a transaction that is open as long as the hold; waits in the server",
	Source:  "MySQL, InnoDB Locking Reads",
	Sites:   locks.OneSite,
	Engine:  engineName,
	Assumes: database.ByConnection,
	Claims:  history.Claims{Excludes: true, Owned: true, Wakes: true},
	Session: true,
	Waits:   true,
	Open: func(e locks.Env) (locks.Lock, error) {
		s, err := open(e)
		return &rowsLock{pinned{session: s}, map[string]bool{}}, err
	},
}

type rowsLock struct {
	pinned
	made map[string]bool
}

func (l *rowsLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return l.AcquireWithin(ctx, key, ttl, 0)
}

// AcquireWithin lets the server wait, which counts in whole seconds: a visit that has less left asks without waiting.
func (l *rowsLock) AcquireWithin(ctx context.Context, key string, _, wait time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	if err := l.row(ctx, l.made, `INSERT IGNORE INTO locked VALUES (?)`, key); err != nil {
		return h, err
	}
	conn, err := l.get(ctx)
	if err != nil {
		return h, err
	}
	if _, err = conn.ExecContext(ctx, `START TRANSACTION`); err == nil {
		err = conn.QueryRowContext(ctx, `SELECT 1 FROM locked WHERE name = ? FOR UPDATE WAIT ?`, key, int(math.Floor(wait.Seconds()))).Scan(new(int))
	}
	if err != nil {
		l.drop() // it takes the transaction with it
		return h, outcome(err)
	}
	l.token, l.on = h.Token, conn
	return h, nil
}

func (l *rowsLock) Release(ctx context.Context, h locks.Lease) error {
	if !l.holds(h) {
		return locks.ErrLost
	}
	l.token = ""
	_, err := l.on.ExecContext(ctx, `COMMIT`)
	return outcome(err)
}
