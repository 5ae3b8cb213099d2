package wire

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// Limits of a connection. If the commands in flight, those without a reply, need more than maxFlightSize bytes, later
// bytes are forwarded without being parsed.
const (
	maxFlightSize = 16 << 20
	requestSize   = 300 // rough memory of a request in bytes, without its arguments
	lastWords     = time.Second
)

// conn is a client's connection through a proxy.
type conn struct {
	proxy  *Proxy
	id     int64
	client net.Conn
	server net.Conn
	done   chan struct{} // closed when the connection breaks
	broken sync.Once

	// used by the method requests
	number   int64
	name     string // name of the client, as in Request.Client
	expected expectation
	ahead    []pending // commands that are not forwarded yet

	// used by the method replies
	due     []pending // commands without a reply, the oldest first; those before the index first are done
	first   int       // index in due of the oldest command
	session session
	began   time.Duration // time at which the first bytes of the current reply were forwarded; 0 = not yet
	lost    bool          // a fault keeps replies from the client

	gone   atomic.Bool // the client has closed its side
	plain  atomic.Bool // bytes are forwarded without being parsed
	ending atomic.Bool // parsing ends after some command in flight
	// size of the commands without a reply in bytes, including queued commands of a transaction
	size atomic.Int64

	mu     sync.Mutex // guards server, and the field below
	flight []pending  // commands that are later than those in due
}

// Ways to end a connection: immediately, or after all written bytes have arrived.
const (
	atOnce = true
	gently = false
)

// end closes both sides: atOnce or gently.
func (c *conn) end(now bool) {
	c.mu.Lock()
	c.broken.Do(func() { close(c.done) })
	sides := []net.Conn{c.client, c.server}
	c.mu.Unlock()
	for _, side := range sides {
		if side == nil {
			continue
		}
		below := side
		if secured, ok := side.(*tls.Conn); ok {
			below = secured.NetConn()
		}
		if tcp, ok := below.(*net.TCPConn); ok && now {
			_ = tcp.SetLinger(0)
		}
		_ = below.Close()
	}
}

// meet sets the server's side. It returns false if the connection is broken already.
func (c *conn) meet(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *conn) serve() {
	var sides sync.WaitGroup
	sides.Go(c.requests)
	sides.Go(c.replies)
	sides.Wait()
	c.end(gently)
	c.depart()
	c.forgo(true)
	c.proxy.run.Sink.Event(Event{Kind: Closed, Server: c.proxy.server, At: c.proxy.run.Clock.Stamp(), Conn: c.id})
}

// unseen ends the parsing of the connection. It reports the reason, once.
func (c *conn) unseen(why string) error {
	if c.plain.CompareAndSwap(false, true) {
		c.proxy.run.Sink.Event(Event{Kind: PassedThrough, Server: c.proxy.server,
			At: c.proxy.run.Clock.Stamp(), Text: why})
	}
	return errUnparsed
}

// forgo stops waiting for replies. The argument lost is passed on as Request.Lost.
func (c *conn) forgo(lost bool) {
	c.mu.Lock()
	list := slices.Concat(c.session.queue, c.due[c.first:], c.flight)
	c.session.queue, c.due, c.first, c.flight = nil, nil, 0, nil
	c.mu.Unlock()
	for _, e := range list {
		if e.request != nil {
			c.answer(e.request, history.Forever, lost)
		}
	}
}

// requests forwards the client's commands until the connection ends.
func (c *conn) requests() {
	f, p := newFlow(c.client, c.server), &command{}
	f.before = c.depart
	var err error
	for err == nil {
		err = c.request(f, p)
	}
	if errors.Is(err, errProtocol) {
		err = c.stop("a request is not RESP")
	}
	err = f.rest(err)
	if f.refused { // replies to earlier commands may still arrive
		_ = c.server.SetReadDeadline(time.Now().Add(lastWords))
		return
	}
	c.gone.Store(true)
	if half, ok := c.server.(interface{ CloseWrite() error }); !ok || err != nil || half.CloseWrite() != nil {
		c.end(err != nil)
		return
	}
	_ = c.server.SetReadDeadline(time.Now().Add(lastWords))
}

func (c *conn) request(f *flow, p *command) error {
	if err := f.need(1); err != nil {
		return err
	}
	if c.plain.Load() {
		return errUnparsed
	}
	err := p.read(f)
	if err == nil {
		err = c.requested(f, p)
	}
	if err == nil {
		f.done()
	}
	return err
}

// stop ends the parsing of requests. Replies to earlier requests are still read.
func (c *conn) stop(why string) error {
	c.push(pending{role: opaque, text: why})
	c.depart()
	c.ending.Store(true)
	return errUnparsed
}

// requested handles a complete command before it is forwarded.
func (c *conn) requested(f *flow, p *command) error {
	if p.args == nil {
		return nil
	}
	e := expect(p)
	c.number++
	c.name = cmp.Or(clientName(p.args), c.name)
	r := &Request{Server: c.proxy.server, Conn: c.id, Number: c.number, Client: c.name, DB: c.expected.db,
		Args: p.args, Call: f.stamp(c.proxy.run.Clock)}
	e.request = r
	if c.expected.apply(e); !c.expected.multi && e.role == ordinary && !f.torn && c.proxy.breaks != nil {
		if do := c.proxy.breaks(r); do != nil {
			e.refused = do.Refuse
		}
	}
	c.proxy.run.Sink.Sent(r)
	switch full := c.push(e); {
	case e.role == opaque:
		c.depart()
		c.ending.Store(true)
		return errUnparsed
	case e.role == subscribes && c.expected.multi:
		return c.stop("a subscription is queued in a transaction")
	case full:
		return c.stop("too many commands are in flight")
	case e.refused != "":
		return f.replace("*1\r\n$4\r\nPING\r\n") // the error takes the place of the reply to this PING
	}
	return nil
}

// push adds a command that is about to be forwarded. It returns whether too many commands are in flight.
func (c *conn) push(e pending) (full bool) {
	c.ahead = append(c.ahead, e)
	return c.size.Add(sizeOf(e.request)) > maxFlightSize
}

// depart moves the commands that are forwarded now from ahead to flight.
func (c *conn) depart() {
	if len(c.ahead) > 0 {
		c.mu.Lock()
		c.flight = append(c.flight, c.ahead...)
		c.mu.Unlock()
		clear(c.ahead)
		c.ahead = c.ahead[:0]
	}
}

// sizeOf returns the rough memory of a request in bytes.
func sizeOf(r *Request) (n int64) {
	if r == nil {
		return 0
	}
	for _, a := range r.Args {
		n += int64(len(a)) + 16
	}
	return n + requestSize
}

// head returns the oldest command in flight; false if there is none.
func (c *conn) head() (e pending, ok bool) {
	if c.first == len(c.due) {
		if cap(c.due) > chunkSize {
			c.due = nil
		}
		c.mu.Lock()
		c.due, c.first, c.flight = c.flight, 0, c.due[:0]
		c.mu.Unlock()
	}
	if len(c.due) == 0 {
		return pending{}, false
	}
	return c.due[c.first], true
}

// pop removes the oldest command in flight. A subscription waits for several confirmations: unless all is true, pop
// only counts one, and returns false if more must come.
func (c *conn) pop(all bool) (e pending, last bool) {
	p := &c.due[c.first]
	p.count--
	if e = *p; p.count > 0 && !all {
		return e, false
	}
	*p = pending{}
	c.first++
	return e, true
}
