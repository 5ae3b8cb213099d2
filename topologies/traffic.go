package topologies

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Traffic counts what clients send. A round trip is one wait for the network: a command, or a pipeline.
type Traffic struct {
	others trips
	mu     sync.Mutex
	apart  []*apart
}

// trips is a counter with a cache line of its own: what stands beside it is read all the time.
type trips struct {
	_ [64]byte
	n atomic.Int64
	_ [56]byte
}

// Apart returns a context for one who sends a lot: what is sent with it is counted in it. Cores that count in the same
// place wait for each other.
func (t *Traffic) Apart(ctx context.Context) context.Context {
	own := &apart{Context: ctx, traffic: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.apart = append(t.apart, own)
	return own
}

// RoundTrips is how many there were so far.
func (t *Traffic) RoundTrips() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.others.n.Load()
	for _, own := range t.apart {
		n += own.n.Load()
	}
	return n
}

// apart is a context that counts: who sends reads his context all the time, so it is at hand.
type apart struct {
	context.Context
	traffic *Traffic
	n       atomic.Int64
	_       [32]byte
}

// Value is the place to count in, asked for by the Traffic that it belongs to.
func (a *apart) Value(key any) any {
	if t, ok := key.(*Traffic); ok && t == a.traffic {
		return &a.n
	}
	return a.Context.Value(key)
}

// counting counts round trips, but not what the library sends by itself on a new connection.
type counting struct{ traffic *Traffic }

func (counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (c counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(ctx, cmds[0])
		return next(ctx, cmds)
	}
}

func (c counting) count(ctx context.Context, first redis.Cmder) {
	switch first.Name() {
	case "hello", "auth", "client", "select", "readonly":
		return
	}
	n, ok := ctx.Value(c.traffic).(*atomic.Int64)
	if !ok {
		n = &c.traffic.others.n
	}
	n.Add(1)
}
