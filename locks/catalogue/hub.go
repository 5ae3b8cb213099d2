package catalogue

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/history"
	"hammerlock/locks"
)

// hub is a process's connection for the messages that wake waiters. A message wakes only one of the waiters on its
// channel, as in Redisson; only one can get the lock.
type hub struct {
	pubsub *redis.PubSub
	done   chan struct{}

	mu       sync.Mutex
	channels map[string]*channel
}

type channel struct {
	waiters   int
	confirmed chan struct{} // closed when the server has confirmed the subscription
	permit    chan struct{} // holds one element if a message came and no waiter has received it yet
}

func openHub(ctx context.Context, c redis.UniversalClient) *hub {
	h := &hub{pubsub: c.Subscribe(ctx), done: make(chan struct{}), channels: map[string]*channel{}}
	messages := h.pubsub.ChannelWithSubscriptions()
	go func() {
		defer close(h.done)
		for m := range messages {
			h.handle(m)
		}
	}()
	return h
}

func (h *hub) handle(message any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := message.(type) {
	case *redis.Subscription:
		c, ok := h.channels[m.Channel]
		if !ok || m.Kind != "subscribe" {
			return
		}
		select {
		case <-c.confirmed:
			c.wake() // reconnected: messages may have been lost
		default:
			close(c.confirmed)
		}
	case *redis.Message:
		if c, ok := h.channels[m.Channel]; ok {
			c.wake()
		}
	}
}

func (c *channel) wake() {
	select {
	case c.permit <- struct{}{}:
	default:
	}
}

func (h *hub) join(ctx context.Context, name string) (*channel, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.channels[name]; ok {
		c.waiters++
		return c, nil
	}
	c := &channel{waiters: 1, confirmed: make(chan struct{}), permit: make(chan struct{}, 1)}
	h.channels[name] = c
	if err := h.pubsub.Subscribe(ctx, name); err != nil {
		delete(h.channels, name)
		return nil, err
	}
	return c, nil
}

func (h *hub) part(ctx context.Context, name string, c *channel) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.waiters--; c.waiters == 0 && h.channels[name] == c {
		delete(h.channels, name)
		_ = h.pubsub.Unsubscribe(ctx, name) // an error does not matter: more messages do no harm
	}
}

func (h *hub) Close() error {
	err := h.pubsub.Close()
	<-h.done
	return err
}

type hubKey struct{ client redis.UniversalClient }

// waiting is embedded in locks that wake their waiters by messages.
type waiting struct {
	client  redis.UniversalClient
	process *locks.Process
	hub     *hub
}

func (w *waiting) wait(ctx context.Context, name string,
	look func(context.Context) (time.Duration, history.Wake, error)) (history.Wake, error) {
	if w.hub == nil {
		h, err := locks.Share(w.process, hubKey{w.client}, func() (*hub, error) {
			return openHub(context.WithoutCancel(ctx), w.client), nil
		})
		if err != nil {
			return history.Poll, err
		}
		w.hub = h
	}
	c, err := w.hub.join(ctx, name)
	if err != nil {
		return history.Poll, err
	}
	defer w.hub.part(context.WithoutCancel(ctx), name, c)
	select {
	case <-c.confirmed:
	case <-c.permit:
		return history.Signal, nil
	case <-ctx.Done():
		return history.Poll, context.Cause(ctx)
	}
	return w.sleep(ctx, c, look)
}

// sleep waits for a message, but no longer than the holder's lease lasts. The function look returns the rest of this
// lease, like PTTL: -2 = the lock is free, -1 = the lease does not end.
func (w *waiting) sleep(ctx context.Context, c *channel,
	look func(context.Context) (time.Duration, history.Wake, error)) (history.Wake, error) {
	left, wake, err := look(ctx)
	if err != nil {
		return history.Poll, err
	}
	if left == gone {
		return history.Poll, nil
	}
	var over <-chan time.Time
	if left >= 0 {
		// A server keeps a key until the end of its last millisecond, so a shorter wait would end too early.
		timer := time.NewTimer(max(left, time.Millisecond))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-c.permit:
		return history.Signal, nil
	case <-over:
		return wake, nil
	case <-ctx.Done():
		return history.Poll, context.Cause(ctx)
	}
}

// gone is the reply of PTTL if the key does not exist.
const gone = time.Duration(-2)

func (w *waiting) close() error {
	if w.hub == nil {
		return nil
	}
	w.hub = nil
	return w.process.Drop(hubKey{w.client})
}
