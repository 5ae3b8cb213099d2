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

// Limits of the commands in flight on a connection. Beyond them its bytes are forwarded without being parsed.
const (
	maxFlightSize = 16 << 20
	requestSize   = 300 // about how many bytes a request takes, without arguments
	lastWords     = time.Second
)

// conn is a client's connection through a proxy.
type conn struct {
	proxy  *Proxy
	id     int64
	client net.Conn
	server net.Conn
	done   chan struct{} // closed when the connection is broken
	broken sync.Once

	// For requests:
	number   int64
	name     string // name of the client: see Request.Client
	expected expectation

	// For replies:
	session session
	began   time.Duration // when the beginning of the current reply was forwarded; 0 = it was not
	lost    bool          // a fault keeps replies from the client

	gone   atomic.Bool // the client has closed its side
	plain  atomic.Bool // bytes are forwarded without being parsed
	ending atomic.Bool // after a command in flight, bytes are not parsed any more

	mu     sync.Mutex // guards the fields below
	flight []pending  // commands without a reply, the oldest first
	first  int        // of them
	size   int        // their size in bytes, with commands of a transaction
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

// meet adds the server's side, unless the connection is broken already.
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

// serve serves the connection until both sides have ended.
func (c *conn) serve() {
	var sides sync.WaitGroup
	sides.Go(c.requests)
	sides.Go(c.replies)
	sides.Wait()
	c.end(gently)
	c.forgo(true)
}

// unseen reports, once, why bytes are forwarded without being parsed.
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

// requests forwards the client's commands.
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
	if f.refused { // replies to earlier commands may still be on their way
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

// request forwards a command.
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

// stop ends the parsing of requests. Replies to the earlier ones are still read.
func (c *conn) stop(why string) error {
	c.push(pending{role: opaque, text: why})
	c.ending.Store(true)
	return errUnparsed
}

// requested handles a command that is complete and about to be forwarded.
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
		return f.replace("*1\r\n$4\r\nPING\r\n") // the reply to this PING is replaced by the error
	}
	return nil
}

// push adds a command that is about to be forwarded. It returns whether too many are in flight.
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

// head is the oldest command in flight; the zero value if there is none.
func (c *conn) head() (e pending, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first == len(c.flight) {
		return pending{}, false
	}
	return c.flight[c.first], true
}

// pop removes the oldest command in flight, or one of the confirmations that it waits for. It returns false if more of
// these must come.
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
