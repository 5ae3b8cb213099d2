// Package ownlock is a lock as one writes it for a service. Its tests are the example: hammertest.
package ownlock

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// Mutex is held by one holder at a time, for at most its TTL. Each holder has a Mutex of its own.
type Mutex struct {
	Client redis.UniversalClient
	Key    string

	token string
	until time.Time
}

// drift is what the clocks of client and server may differ in a lease.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// TryLock makes one try. An error leaves open whether the lock is held: Unlock gives it back if it is.
func (m *Mutex) TryLock(ctx context.Context, ttl time.Duration) (bool, error) {
	m.token = rand.Text()
	call := time.Now()
	granted, err := m.Client.SetNX(ctx, m.Key, m.token, ttl).Result()
	m.until = call.Add(ttl - drift(ttl))
	return granted, err
}

// Until is when the holder has to be done.
func (m *Mutex) Until() time.Time { return m.until }

var extend = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)

// Extend lengthens the lease to ttl from now. False says that the lock was lost.
func (m *Mutex) Extend(ctx context.Context, ttl time.Duration) (bool, error) {
	call := time.Now()
	n, err := extend.Run(ctx, m.Client, []string{m.Key}, m.token, ttl.Milliseconds()).Int()
	if err == nil && n == 1 {
		m.until = call.Add(ttl - drift(ttl))
	}
	return n == 1, err
}

var unlock = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// Unlock gives the lock back. False says that it was lost before.
func (m *Mutex) Unlock(ctx context.Context) (bool, error) {
	n, err := unlock.Run(ctx, m.Client, []string{m.Key}, m.token).Int()
	return n == 1, err
}
