package explore

import (
	"bufio"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// kit has objects that are expensive to make. The schedules of a search reuse them one after another. They carry no
// state from one schedule to the next.
type kit struct {
	scripts
	lua   *interpreter
	spare []*miniredis.Miniredis
}

func newKit() *kit { return &kit{scripts: scripts{texts: map[string]string{}}, lua: newInterpreter()} }

func (k *kit) servers(n int) (list []*memory, err error) {
	for range n {
		m := miniredis.NewMiniRedis()
		if last := len(k.spare) - 1; last >= 0 {
			m, k.spare = k.spare[last], k.spare[:last]
		} else if err = awake(m); err != nil {
			return nil, err
		}
		list = append(list, &memory{Miniredis: m, kit: k})
	}
	return list, nil
}

// awake starts a server that listens on no address.
func awake(m *miniredis.Miniredis) error {
	c, err := m.Dial()
	if err != nil {
		return err
	}
	return c.Close()
}

// memory is a server in memory. Only one schedule at a time uses it.
type memory struct {
	*miniredis.Miniredis
	kit   *kit
	spent atomic.Bool // not reusable: the server has state besides keys, or a connection that waits for others
}

// connect makes a connection, whose commands are executed immediately.
func (m *memory) connect(l *link) *inMemory {
	return &inMemory{to: m, server: m.Server(), link: l, peer: server.NewPeer(bufio.NewWriterSize(l, 256))}
}

// end returns the server to the kit. No client may be connected any more.
func (m *memory) end() {
	if m.spent.Load() {
		m.Close()
		return
	}
	m.FlushAll()
	m.kit.spare = append(m.kit.spare, m.Miniredis)
}

// inMemory is the server's end of a connection.
type inMemory struct {
	to     *memory
	server *server.Server
	link   *link
	peer   *server.Peer

	listens, closed atomic.Bool // listens: the client has subscribed, or is about to
}

// blocking lists the commands that may wait for another connection.
var blocking = map[string]bool{"blpop": true, "brpop": true, "blmove": true, "brpoplpush": true, "bzpopmin": true,
	"bzpopmax": true, "xread": true, "xreadgroup": true}

// send executes a complete request; queued means that the request is part of a transaction.
func (c *inMemory) send(name string, f *frame, queued bool) {
	if name == "eval" && !queued && len(f.words) > 2 && c.to.kit.lua.run(c.to.Miniredis, c.peer, f.words) {
		c.peer.Flush()
		return
	}
	do := func() {
		c.server.Dispatch(c.peer, f.words)
		c.peer.Flush()
	}
	if blocking[name] || name == "eval" || name == "script" {
		c.to.spent.Store(true)
	}
	if name == "eval" && !queued {
		c.to.kit.lua.effects++ // the server executes this script, so count it as a change
	}
	if blocking[name] {
		c.link.w.links.Go(do)
		return
	}
	if name == "subscribe" || name == "psubscribe" {
		c.listens.Store(true)
	}
	if do(); c.listens.Load() && c.closed.Load() {
		c.unsubscribe() // close may have been called before the subscription began
	}
}

// close ends the connection. It does not wait for blocked commands: the server may call it while it writes a reply.
func (c *inMemory) close() {
	c.closed.Store(true)
	if listens := c.listens.Load(); listens || c.to.spent.Load() {
		c.link.w.links.Go(func() {
			if c.peer.Close(); listens {
				c.unsubscribe()
			}
		})
	}
}

// unsubscribe ends the goroutines with which the server serves a subscriber.
func (c *inMemory) unsubscribe() {
	c.server.Dispatch(c.peer, []string{"UNSUBSCRIBE"})
	c.server.Dispatch(c.peer, []string{"PUNSUBSCRIBE"})
}
