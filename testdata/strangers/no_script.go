package catalogue

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// resque/resque-scheduler issue 298, its resilient lock; leandromoreira/redlock-rb issues 27 and 148: scripts are
// loaded once, and only their digests are sent from then on. A server that was restarted does not know them.
var noScript = locks.Spec{
	Name: "no-script", Doc: "lease by scripts that are loaded once and called by their digests",
	Source: "resque-scheduler issue 298; redlock-rb issue 27",
	Sites:  locks.OneSite, Broken: "after a restart of the server every call fails for good",
	Claims: history.Claims{Excludes: true, Expires: true, Owned: true, Cleans: true},
	Open: func(e locks.Env) (locks.Lock, error) {
		return &noScriptLock{client: e.Sites[0], loaded: map[*redis.Script]bool{}}, nil
	},
}

type noScriptLock struct {
	client redis.UniversalClient
	loaded map[*redis.Script]bool
}

var setIfFree = redis.NewScript(
	`if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return 1 end return 0`)

func (l *noScriptLock) run(ctx context.Context, s *redis.Script, key string, args ...any) (int64, error) {
	if !l.loaded[s] {
		if err := s.Load(ctx, l.client).Err(); err != nil {
			return 0, err
		}
		l.loaded[s] = true
	}
	return s.EvalSha(ctx, l.client, []string{key}, args...).Int64()
}

func (l *noScriptLock) Acquire(ctx context.Context, key string, ttl time.Duration) (locks.Lease, error) {
	lease := locks.Lease{Key: key, Token: rand.Text()}
	call := time.Now()
	err := granted(l.run(ctx, setIfFree, key, lease.Token, ttl.Milliseconds()))
	return from(lease, call, ttl, err)
}

func (l *noScriptLock) Extend(ctx context.Context, lease locks.Lease, ttl time.Duration) (locks.Lease, error) {
	call := time.Now()
	err := owned(l.run(ctx, compareAndExpire.Script, lease.Key, lease.Token, ttl.Milliseconds()))
	return from(lease, call, ttl, err)
}

func (l *noScriptLock) Release(ctx context.Context, lease locks.Lease) error {
	return owned(l.run(ctx, compareAndDelete.Script, lease.Key, lease.Token))
}

func (l *noScriptLock) Close() error { return nil }
