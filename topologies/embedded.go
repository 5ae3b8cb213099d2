package topologies

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedNode is an in-memory Redis in this process. A ticker advances its clock by a millisecond, so that leases
// end. On a busy machine the clock falls behind and stays behind: a jump would shorten leases.
type embeddedNode struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   chan struct{}
}

const embeddedTick = time.Millisecond

var embeddedServers = &Engine{
	Ready:  func(ctx context.Context, n *Node) error { return n.control.Ping(ctx).Err() },
	Empty:  flush,
	inside: (*Node).runInside,
	within: startTimeout,
}

// embeds returns nil if in-memory servers can serve the topology with these options.
func (s Spec) embeds(o *Options) error {
	if !s.embeddable {
		return errors.New("it needs real servers, the embedded one serves only single and redlock")
	}
	if o.Links || o.Clock || o.Power || o.Durable != "" {
		return errors.New("links, clocks and durability need real servers, the embedded one has none of them")
	}
	return nil
}

func (n *Node) runInside() error {
	server := miniredis.NewMiniRedis()
	server.RequireAuth(n.topology.password)
	if user := n.topology.Options.User; user != "" {
		server.RequireUserAuth(user, n.topology.clientPassword())
	}
	if err := server.StartAddr(cmp.Or(n.front, "127.0.0.1:0")); err != nil {
		return err
	}
	n.mini = &embeddedNode{server: server, stop: make(chan struct{}), done: make(chan struct{})}
	n.front, n.back = server.Addr(), server.Addr()
	if n.control == nil {
		n.controlled()
	}
	go n.mini.run()
	return nil
}

func (e *embeddedNode) run() {
	defer close(e.done)
	ticker := time.NewTicker(embeddedTick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			now := time.Now()
			e.server.FastForward(min(now.Sub(last), 2*embeddedTick))
			last = now
		}
	}
}

func (e *embeddedNode) close() {
	close(e.stop)
	<-e.done
	e.server.Close()
}
