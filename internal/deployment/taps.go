package deployment

import (
	"context"
	"net"
	"sync"

	"hammerlock/history"
	"hammerlock/internal/wire"
	"hammerlock/internal/witness"
	"hammerlock/topologies"
)

// Stream returns an empty witness.Stream. It compares operations with the replication streams of the locks' servers.
func (d *Deployment) Stream(clock *history.Clock) *witness.Stream {
	var names, keys []string
	var sites []int
	for i, site := range d.Topology.Sites {
		for _, n := range site.Nodes {
			names, sites = append(names, n.Name), append(sites, i)
		}
	}
	for _, page := range d.Pages {
		keys = append(keys, page.Lock)
	}
	return witness.NewStream(clock, keys, names, sites)
}

// Tap reads the replication streams of the locks' servers, and passes them to the argument s, until done is closed. It
// connects to the servers directly, without proxies. If a server refuses, Tap tells s.
func (d *Deployment) Tap(ctx context.Context, done <-chan struct{}, clock *history.Clock, s *witness.Stream) {
	run := &wire.Run{Clock: clock, Sink: s}
	var all sync.WaitGroup
	number := 0
	for _, site := range d.Topology.Sites {
		for _, n := range site.Nodes {
			from := wire.Source{Server: number, Dial: past(n), Password: n.Password()}
			number++
			all.Go(func() {
				tap, err := run.Tap(ctx, from)
				if err != nil {
					s.Refused(from.Server, err)
					return
				}
				<-done
				s.Close(clock.Now())
				_ = tap.Close() // an error does not matter at the end
			})
		}
	}
	all.Wait()
}

// The function past returns a function that connects to a node directly, without its proxy.
func past(n *topologies.Node) wire.Dial {
	dial := topologies.Access{Addrs: []string{n.Back()}, Password: n.Password()}.Site().Passage(0)
	return func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", n.Back()) }
}
