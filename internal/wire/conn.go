package wire

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// Bounds of the commands in flight that a connection keeps. Beyond them its bytes are passed on unseen.
const (
	maxFlightSize = 16 << 20
	requestSize   = 300 // bytes about, without the arguments
	lastWords     = time.Second
)

// conn is a connection of a client through a proxy.
type conn struct {
	proxy  *Proxy
	id     int64
	client net.Conn
	server net.Conn
	done   chan struct{} // closed when it is broken
	broken sync.Once

	// The side of the requests.
	number   int64
	name     string // of the client: see Request.Client
	expected expectation

	// The side of the replies.
	session session
	began   time.Duration // the beginning of the reply under way was passed on; 0 = it was not
	lost    bool          // a fault keeps replies from the client

	gone   atomic.Bool // the client has ended its side
	plain  atomic.Bool // bytes are passed on unseen
	ending atomic.Bool // an opaque command is in flight

	mu     sync.Mutex // guards the fields below
	flight []pending  // commands without a reply, the oldest first
	first  int        // of them
	size   int        // of requests without a reply, queued ones too
}

// How a connection ends: at once, or when the bytes that were written have arrived.
const (
	atOnce = true
	gently = false
)

// end ends both sides.
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

// meet takes the server's side in, unless the connection is broken already.
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

// serve carries the connection until both sides have ended.
func (c *conn) serve() {
	var sides sync.WaitGroup
	sides.Go(c.requests)
	sides.Go(c.replies)
	sides.Wait()
	c.end(gently)
	c.forgo(true)
}

// unseen says why bytes are passed on unseen from now on, once.
func (c *conn) unseen(why string) error {
	if c.plain.CompareAndSwap(false, true) {
		c.proxy.run.Sink.Event(Event{Kind: PassedThrough, Server: c.proxy.server,
			At: c.proxy.run.Clock.Stamp(), Text: why})
	}
	return errUnparsed
}

// forgo gives up waiting for replies.
func (c *conn) forgo(lost bool) {
	c.mu.Lock()
	list := append(c.session.queue, c.flight[c.first:]...)
	c.session.queue, c.flight, c.first = nil, nil, 0
	c.mu.Unlock()
	for _, e := range list {
		if e.request != nil {
			c.answer(e.request, history.Forever, lost)
		}
	}
}

// requests carries the client's commands.
func (c *conn) requests() {
	f, p := newFlow(c.client, c.server), &command{}
	var err error
	for err == nil {
		err = c.request(f, p)
	}
	if errors.Is(err, errProtocol) {
		err = c.stop("a request is not RESP")
	}
	err = f.rest(err)
	if f.refused { // the replies before may still be on their way
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

// request carries a command.
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

// stop is where requests cannot be understood any more. The replies to those before are still read.
func (c *conn) stop(why string) error {
	c.push(pending{role: opaque, text: why})
	c.ending.Store(true)
	return errUnparsed
}

// requested takes in a command that is complete and about to be forwarded.
func (c *conn) requested(f *flow, p *command) error {
	if p.args == nil {
		return nil
	}
	e := expect(p)
	c.number++
	c.name = cmp.Or(clientName(p.args), c.name)
	r := &Request{Server: c.proxy.server, Conn: c.id, Number: c.number, Client: c.name, DB: c.expected.db,
		Args: p.args, Call: c.proxy.run.Clock.Stamp()}
	e.request = r
	if c.expected.apply(e); !c.expected.multi && e.role == ordinary && !f.torn && c.proxy.breaks != nil {
		if do := c.proxy.breaks(r); do != nil {
			e.refused = do.Refuse
		}
	}
	c.proxy.run.Sink.Sent(r)
	switch full := c.push(e); {
	case e.role == opaque:
		c.ending.Store(true)
		return errUnparsed
	case e.role == subscribes && c.expected.multi:
		return c.stop("a subscription is queued in a transaction")
	case full:
		return c.stop("too many commands are in flight")
	case e.refused != "":
		return f.replace("*1\r\n$4\r\nPING\r\n") // its reply holds the place of the refusal's
	}
	return nil
}

// push notes a command that is about to be forwarded, and tells whether too many are in flight.
func (c *conn) push(e pending) (full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += sizeOf(e.request)
	if c.first > chunkSize && c.first > len(c.flight)/2 {
		c.flight, c.first = append(c.flight[:0], c.flight[c.first:]...), 0
	}
	c.flight = append(c.flight, e)
	return c.size > maxFlightSize
}

// sizeOf is about how much memory a request takes.
func sizeOf(r *Request) (n int) {
	if r == nil {
		return 0
	}
	for _, a := range r.Args {
		n += len(a) + 16
	}
	return n + requestSize
}

// head is the oldest command in flight; the zero one if there is none.
func (c *conn) head() (e pending, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == len(c.flight) {
		return pending{}, false
	}
	return c.flight[c.first], true
}

// pop takes a confirmation off the oldest command in flight, or its reply, which is all. It is false if more have to
// come.
func (c *conn) pop(all bool) (e pending, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.flight[c.first]
	p.count--
	if e = *p; p.count > 0 && !all {
		return e, false
	}
	*p = pending{}
	if c.first++; c.first == len(c.flight) {
		if c.flight, c.first = c.flight[:0], 0; cap(c.flight) > chunkSize {
			c.flight = nil
		}
	}
	return e, true
}
