package catalogue

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/mod/semver"

	"hammerlock/locks"
	"hammerlock/topologies"
)

// handoffHub receives the messages of grants for all waiters of a process, over one connection. In a cluster it has
// one connection for each lock, because a script publishes on its own node only.
type handoffHub struct {
	client    redis.UniversalClient
	scripts   handoffScripts
	subscribe func(p *redis.PubSub, ctx context.Context, channels ...string) error
	fences    int64
	name      string // name of the process, in the names of its channels
	clustered bool
	running   sync.WaitGroup

	mu      sync.Mutex
	wires   map[string]*handoffWire  // connections, in a cluster by lock; otherwise the only key is ""
	waiting map[string]*handoffPlace // by line
}

type handoffHubKey struct {
	client redis.UniversalClient
	fences int64
}

func newHandoffHub(e locks.Env, fences int64) *handoffHub {
	c := e.Sites[0]
	h := &handoffHub{client: c, scripts: published, subscribe: (*redis.PubSub).Subscribe, fences: fences,
		name:  e.Within + "handoff:" + rand.Text(),
		wires: map[string]*handoffWire{}, waiting: map[string]*handoffPlace{}}
	if _, h.clustered = c.(*redis.ClusterClient); h.clustered && semver.Compare("v"+e.Server.Version, "v7.0") >= 0 {
		h.scripts, h.subscribe = sharded, (*redis.PubSub).SSubscribe
	}
	return h
}

// handoffWire is a connection with a subscription.
type handoffWire struct {
	home, channel string
	pubsub        *redis.PubSub
	ready         chan struct{} // closed when the server has confirmed the subscription

	mu     sync.Mutex
	cut    chan struct{} // closed, and then replaced, when messages may have been lost
	closed bool
	came   int // number of messages and confirmations
}

// wire returns the connection for a lock, or nil if the server has not yet confirmed its subscription.
func (h *handoffHub) wire(key string) *handoffWire {
	h.mu.Lock()
	w := h.wires[h.home(key)]
	h.mu.Unlock()
	if w != nil {
		select {
		case <-w.ready:
			return w
		default:
		}
	}
	return nil
}

func (h *handoffHub) home(key string) string {
	if h.clustered {
		return key
	}
	return ""
}

// handoffTimeout limits two waits: for the confirmation of a subscription, and for the release of an unwanted grant.
const handoffTimeout = time.Second

// listen subscribes and waits until the server confirms the subscription. Without a subscription the process counts
// as dead, and serve would remove its waiters from the queue.
func (h *handoffHub) listen(ctx context.Context, key string) (*handoffWire, error) {
	h.mu.Lock()
	w, ok := h.wires[h.home(key)]
	if !ok {
		w = &handoffWire{home: h.home(key), channel: h.name, ready: make(chan struct{}), cut: make(chan struct{})}
		if h.clustered {
			w.channel = sibling(h.name, key) // in the cluster slot of the lock
		}
		h.wires[w.home] = w
		life := context.WithoutCancel(ctx)
		w.pubsub = h.client.Subscribe(life)
		h.running.Go(func() { h.hear(life, w) })
	}
	h.mu.Unlock()
	timer := time.NewTimer(handoffTimeout)
	defer timer.Stop()
	select {
	case <-w.ready:
		return w, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return nil, fmt.Errorf("%w: no subscription within %v", topologies.ErrUnreachable, handoffTimeout)
	}
}

// hear receives messages until the connection is closed.
func (h *handoffHub) hear(ctx context.Context, w *handoffWire) {
	_ = h.subscribe(w.pubsub, ctx, w.channel) // an error does not matter: the library tries again
	for m := range w.pubsub.ChannelWithSubscriptions() {
		w.mu.Lock()
		w.came++
		w.mu.Unlock()
		switch m := m.(type) {
		case *redis.Subscription:
			if strings.HasSuffix(m.Kind, "unsubscribe") {
				h.drop(w) // the slot has moved to another node
			} else {
				w.confirm()
			}
		case *redis.Message:
			h.deliver(ctx, m.Payload)
		}
	}
}

// confirm is called for each confirmation of a subscription. Each one after the first means that the library has
// reconnected, so messages may have been lost.
func (w *handoffWire) confirm() {
	select {
	case <-w.ready:
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closed {
			close(w.cut)
			w.cut = make(chan struct{})
		}
	default:
		close(w.ready)
	}
}

// now returns the channel that is closed if messages may be lost from now on.
func (w *handoffWire) now() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

// heard returns the number of messages and confirmations so far.
func (w *handoffWire) heard() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.came
}

func (w *handoffWire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// drop closes a connection whose subscription the server has lost. The next waiter opens a new one.
func (h *handoffHub) drop(w *handoffWire) {
	h.mu.Lock()
	if h.wires[w.home] == w {
		delete(h.wires, w.home)
	}
	h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.cut)
		_ = w.pubsub.Close() // the connection is of no use any more
	}
}

// expect registers a place in the queue, so that deliver finds it when its message arrives.
func (h *handoffHub) expect(p *handoffPlace) {
	h.mu.Lock()
	h.waiting[p.line] = p
	h.mu.Unlock()
}

func (h *handoffHub) forget(p *handoffPlace) {
	h.mu.Lock()
	delete(h.waiting, p.line)
	h.mu.Unlock()
}

// deliver passes a grant to the worker that waits for it. If this worker has given up or died, deliver releases the
// lock.
func (h *handoffHub) deliver(ctx context.Context, message string) {
	key, line, g, ok := readGrant(message)
	if !ok {
		return // not the message of a grant
	}
	h.mu.Lock()
	p, ok := h.waiting[line]
	delete(h.waiting, line)
	h.mu.Unlock()
	if ok {
		p.granted <- g
		return
	}
	h.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, handoffTimeout)
		defer cancel()
		_ = h.leave(ctx, key, line) // an error does not matter: the lock is free when the lease ends
	})
}

// readGrant parses a message of the form "fencing token|server's clock in µs|length of the key|key and line".
func readGrant(message string) (key, line string, g handoffGrant, ok bool) {
	f := strings.SplitN(message, "|", 4)
	if len(f) < 4 {
		return "", "", g, false
	}
	fence, err := strconv.ParseInt(f[0], 10, 64)
	clock, failed := strconv.ParseInt(f[1], 10, 64)
	n, wrong := strconv.Atoi(f[2])
	if err != nil || failed != nil || wrong != nil || n < 0 || n > len(f[3]) {
		return "", "", g, false
	}
	return f[3][:n], f[3][n:], handoffGrant{fence, time.Duration(clock) * time.Microsecond}, true
}

// leave releases a lock, or removes the line from its queue. It returns ErrLost if the line did not hold the lock.
func (h *handoffHub) leave(ctx context.Context, key, line string) error {
	return owned(h.scripts.leave.Run(ctx, h.client, handoffKeys(key), line, h.fences).Int64())
}

// Close closes the connections.
func (h *handoffHub) Close() error {
	h.mu.Lock()
	wires := slices.Collect(maps.Values(h.wires))
	h.mu.Unlock()
	for _, w := range wires {
		h.drop(w)
	}
	h.running.Wait()
	return nil
}
