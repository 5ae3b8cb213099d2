package database

import (
	"context"
	"crypto/rand"
	"time"

	"hammerlock/locks"
)

// ByConnection completes the spec of a lock that the server ties to its holder's connection.
func (s *Server) ByConnection(l locks.Spec, open func(*Session) locks.Lock) locks.Spec {
	l.Name, l.Source = s.Prefix+l.Name, s.Manual+", "+l.Source
	l.Sites, l.Engine, l.Session = locks.OneSite, s.Engine, true
	l.Assumes = "the connection lasts as long as the hold: the server frees the lock when it ends, " +
		"and the holder does not hear of it"
	l.Open = func(e locks.Env) (locks.Lock, error) {
		session, err := s.open(e)
		return open(session), err
	}
	return l
}

// Pinned is a lock that the server ties to the connection on which it was granted. Workers wait for it in the server.
type Pinned struct {
	*Session
	by    Pins
	made  map[string]bool // names of the locks whose row exists
	token string          // of the current hold
	on    Conn            // the connection of the grant
}

// Pins says how a Pinned lock is taken and released.
type Pins struct {
	Row string // makes the row of a lock if it does not exist; empty = the lock needs no row
	// Take waits for a lock, and returns its fence; 0 = the lock has no fences. Its error must be one from which
	// locks.Classify knows the outcome. A failed Take leaves nothing behind on the connection.
	Take func(ctx context.Context, conn Conn, key string, wait time.Duration) (fence int64, err error)
	Give func(ctx context.Context, conn Conn, key string) error
}

// Pin makes a Pinned lock on a session.
func Pin(s *Session, by Pins) *Pinned { return &Pinned{Session: s, by: by, made: map[string]bool{}} }

// Acquire makes one try and does not wait.
func (p *Pinned) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	return p.AcquireWithin(ctx, key, ttl, 0)
}

// AcquireWithin waits in the server's queue.
func (p *Pinned) AcquireWithin(ctx context.Context, key string, _, wait time.Duration) (locks.Lease, error) {
	h := locks.Lease{Key: key, Token: rand.Text()}
	conn, err := p.get(ctx)
	if p.by.Row != "" {
		conn, err = p.row(ctx, p.made, p.by.Row, key)
	}
	if err != nil {
		return h, err
	}
	if h.Fence, err = p.by.Take(ctx, conn, key, wait); err != nil {
		return h, err
	}
	p.token, p.on = h.Token, conn
	return h, nil
}

// Extend extends nothing. It only checks whether the connection is still alive.
func (p *Pinned) Extend(ctx context.Context, h locks.Lease, _ time.Duration) (locks.Lease, error) {
	if !p.holds(h) {
		return h, locks.ErrLost
	}
	_, err := p.on.Exec(ctx, `SELECT 1`)
	return h, p.server.Outcome(err)
}

// Release releases the lock on its connection.
func (p *Pinned) Release(ctx context.Context, h locks.Lease) error {
	if !p.holds(h) {
		return locks.ErrLost
	}
	p.token = ""
	return p.by.Give(ctx, p.on, h.Key)
}

// holds reports whether the hold's connection is alive, as far as the client knows.
func (p *Pinned) holds(h locks.Lease) bool {
	return p.token == h.Token && p.on != nil && p.on.Alive()
}
