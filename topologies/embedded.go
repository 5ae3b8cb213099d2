package topologies

import (
	"cmp"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// embeddedNode is an in-process stand-in for a server. A ticker drives its clock, so that leases end, to the millisecond.
// On a busy machine it falls behind and does not catch up, because a jump would shorten leases.
type embeddedNode struct {
	server *miniredis.Miniredis
	stop   chan struct{}
	done   chan struct{}
}

const embeddedTick = time.Millisecond

func (n *Node) startEmbedded() error {
	server := miniredis.NewMiniRedis()
	server.RequireAuth(n.topology.password)
	if err := server.StartAddr(cmp.Or(n.front, "127.0.0.1:0")); err != nil {
		return err
	}
	n.mini = &embeddedNode{server: server, stop: make(chan struct{}), done: make(chan struct{})}
	n.front, n.back = server.Addr(), server.Addr()
	if n.control == nil {
		n.control = newControl(controlOptions{addr: n.back, login: Login{password: n.topology.password}, clustered: n.topology.clustered()})
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
