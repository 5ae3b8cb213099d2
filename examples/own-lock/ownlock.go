// Package ownlock is a lock as a service might have it. Its tests show how to test a lock with package hammertest.
package ownlock

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// Mutex is a lock that one holder has at any time, for at most the TTL. Each holder needs its own Mutex.
type Mutex struct {
	Client redis.UniversalClient
	Key    string

	token string
	until time.Time
}

// drift is the allowance for clocks of client and server that do not run at the same speed.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// TryLock makes one try, and returns true if the lock was granted. After an error the lock may be held or not;
// Unlock releases it if it is.
func (m *Mutex) TryLock(ctx context.Context, ttl time.Duration) (bool, error) {
	m.token = rand.Text()
	call := time.Now()
	granted, err := m.Client.SetNX(ctx, m.Key, m.token, ttl).Result()
	m.until = call.Add(ttl - drift(ttl))
	return granted, err
}

// Until returns the time by which the holder must be done.
func (m *Mutex) Until() time.Time { return m.until }

var extend = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)

// Extend lets the lease end at ttl from now. It returns false if the lock was lost.
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

// Unlock releases the lock. It returns false if the lock was lost before.
func (m *Mutex) Unlock(ctx context.Context) (bool, error) {
	n, err := unlock.Run(ctx, m.Client, []string{m.Key}, m.token).Int()
	return n == 1, err
}
