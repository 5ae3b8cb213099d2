package explore

import (
	"bufio"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// kit is what the schedules of a search share because it takes long to make. Nothing in it tells one of another.
type kit struct {
	scripts
	lua   *interpreter
	spare []*miniredis.Miniredis
}

func newKit() *kit { return &kit{scripts: scripts{texts: map[string]string{}}, lua: newInterpreter()} }

// servers are n servers without keys.
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

// awake starts a server without a listener: as soon as a client connects.
func awake(m *miniredis.Miniredis) error {
	c, err := m.Dial()
	if err != nil {
		return err
	}
	return c.Close()
}

// memory is a server in memory, as long as a schedule lasts.
type memory struct {
	*miniredis.Miniredis
	kit   *kit
	spent atomic.Bool // it remembers more than keys, or a connection may have waited for others: it is not used again
}

// connect makes a connection. Commands over it are carried out at once.
func (m *memory) connect(l *link) *inMemory {
	return &inMemory{to: m, server: m.Server(), link: l, peer: server.NewPeer(bufio.NewWriterSize(l, 256))}
}

// end gives the server back when no client is connected any more.
func (m *memory) end() {
	if m.spent.Load() {
		m.Close()
		return
	}
	m.FlushAll()
	m.kit.spare = append(m.kit.spare, m.Miniredis)
}

// inMemory is a connection to a server in memory.
type inMemory struct {
	to     *memory
	server *server.Server
	link   *link
	peer   *server.Peer

	listens, closed atomic.Bool // it has subscribed, or is about to; it is closed, perhaps before that
}

// blocking are the commands that may wait for another connection.
var blocking = map[string]bool{"blpop": true, "brpop": true, "blmove": true, "brpoplpush": true, "bzpopmin": true,
	"bzpopmax": true, "xread": true, "xreadgroup": true}

// send carries out a request, whole; queued = in a transaction.
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
		c.to.kit.lua.effects++ // what a script of this kind does is not looked at: it counts
	}
	if blocking[name] {
		c.link.w.links.Go(do)
		return
	}
	if name == "subscribe" || name == "psubscribe" {
		c.listens.Store(true)
	}
	if do(); c.listens.Load() && c.closed.Load() {
		c.unsubscribe() // what closed it may have come before
	}
}

// close ends what waits for others. It does not wait for that: the caller may be in the middle of an answer.
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
