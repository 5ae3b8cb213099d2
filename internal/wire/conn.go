package wire

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/history"
)

// What a connection keeps of commands in flight. What is more is passed on, and only counted.
const (
	maxInFlight   = 16 << 10
	maxFlightSize = 8 << 20
	maxPending    = 1 << 18 // with those that are not kept, but are not ordinary
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
	expected expectation
	off      bool  // CLIENT REPLY OFF
	skip     bool  // the reply to the next command
	notKept  int64 // requests, since the last that was kept

	// The side of the replies.
	session session
	began   time.Duration // the beginning of the reply under way was passed on; 0 = it was not
	lost    bool          // a rule keeps replies from the client

	gone   atomic.Bool // the client has ended its side
	plain  atomic.Bool // bytes are passed on unseen
	ending atomic.Bool // an opaque command is in flight

	mu      sync.Mutex // guards what follows
	flight  []pending  // commands without a reply, the oldest first
	first   int        // of them
	kept    int        // requests that are kept, queued ones too
	size    int        // of them
	full    bool       // so much is kept that nothing more is for now
	because string     // why it was closed
}

// end ends both sides: at once, or when what was written has arrived.
func (c *conn) end(at once) {
	c.broken.Do(func() { close(c.done) })
	for _, side := range []net.Conn{c.client, c.server} {
		if side == nil {
			continue
		}
		below := side
		if secured, ok := side.(*tls.Conn); ok {
			below = secured.NetConn()
		}
		if tcp, ok := below.(*net.TCPConn); ok && at == atOnce {
			_ = tcp.SetLinger(0)
		}
		_ = below.Close()
	}
}

// once is how a connection ends.
type once bool

const (
	atOnce once = true
	gently once = false
)

// serve carries the connection until both sides have ended.
func (c *conn) serve() {
	var sides sync.WaitGroup
	sides.Go(c.requests)
	sides.Go(c.replies)
	sides.Wait()
	c.end(gently)
	c.forgo(true)
	c.event(Event{Kind: Closed, Text: c.because})
}

func (c *conn) event(e Event) {
	e.Server, e.Conn, e.At = c.proxy.server, c.id, c.proxy.run.Clock.Stamp()
	c.proxy.run.Sink.Event(e)
}

// unseen says why bytes are passed on unseen from now on, once.
func (c *conn) unseen(why string) {
	if c.plain.CompareAndSwap(false, true) {
		c.event(Event{Kind: PassedThrough, Text: why})
	}
}

// forgo gives up waiting for the replies to what is in flight.
func (c *conn) forgo(lost bool) {
	for _, e := range append(c.session.queue, c.drain()...) {
		if r := e.request; r != nil {
			c.answer(r, history.Forever, lost)
		}
	}
	c.session.queue = nil
}

// requests carries what the client sends.
func (c *conn) requests() {
	f, p := &flow{from: c.client, to: c.server, long: func() bool { return false }}, &commands{}
	err := f.run(func(b []byte) (int, bool, error) {
		if c.plain.Load() {
			return 0, false, errUnparsed
		}
		return p.next(b)
	}, func() error { return c.requested(f, p) })
	if errors.Is(err, errProtocol) {
		c.event(Event{Kind: NotKept, Count: 1, Text: "a request that is not RESP"})
		c.stop("a request is not RESP")
		err = errUnparsed
	}
	c.countNotKept()
	if errors.Is(err, errUnparsed) {
		if err = f.pass(f.end); err == nil {
			_, err = io.Copy(c.server, c.client)
		}
	} else if errors.Is(err, io.EOF) {
		err = f.pass(f.end) // the client has ended within a request
	}
	if f.refused { // the replies before may still be on their way
		_ = c.server.SetReadDeadline(time.Now().Add(lastWords))
		return
	}
	c.gone.Store(true)
	if half, ok := c.server.(interface{ CloseWrite() error }); !ok || err != nil || half.CloseWrite() != nil {
		c.ends("client: ", err)
		return
	}
	_ = c.server.SetReadDeadline(time.Now().Add(lastWords))
}

// stop is where requests cannot be understood any more. What comes behind the replies to those before is passed on
// unseen.
func (c *conn) stop(why string) {
	c.push(pending{role: opaque, count: 1, text: why})
	c.ending.Store(true)
}

// ends is the end of a connection; err is why it broke, or nil.
func (c *conn) ends(side string, err error) {
	if err == nil {
		c.end(gently)
		return
	}
	c.mu.Lock()
	if c.because == "" && !errors.Is(err, net.ErrClosed) {
		c.because = side + err.Error()
	}
	c.mu.Unlock()
	c.end(atOnce)
}

// requested takes in a command that is complete and about to be forwarded.
func (c *conn) requested(f *flow, p *commands) error {
	if p.args == nil {
		return nil
	}
	e, silent, understood := c.expect(p)
	c.number++
	r := &Request{Server: c.proxy.server, Conn: c.id, Number: c.number, DB: c.expected.db, User: c.expected.user,
		Args: p.args, Cut: p.cut, Multi: c.expected.apply(e), Call: c.proxy.run.Clock.Stamp()}
	if e.request = r; silent {
		c.proxy.run.Sink.Sent(r)
		r.Return = history.Forever
		c.proxy.run.Sink.Request(r)
	} else if c.roomy() {
		c.countNotKept()
		c.proxy.run.Sink.Sent(r)
		c.push(e)
	} else {
		e.request = nil
		c.push(e)
		if c.notKept++; c.notKept == 1 {
			c.event(Event{Kind: NotKept, Text: "from here on: too many requests are in flight"})
		}
	}
	if e.role == mentions {
		if err := c.proxy.rewrite(f, toServer); err != nil {
			return err
		}
	}
	if !understood {
		c.stop("a command changes the connection, or is queued, and no reply says so")
		return errUnparsed
	}
	if e.role == opaque {
		c.ending.Store(true)
		return errUnparsed
	}
	return nil
}

// countNotKept tells how many requests were not kept since the last that was.
func (c *conn) countNotKept() {
	if c.notKept > 0 {
		c.event(Event{Kind: NotKept, Count: c.notKept, Text: "too many requests were in flight"})
	}
	c.notKept = 0
}

// expect says what to expect of a command: whether it is answered, and whether the connection is understood behind it.
func (c *conn) expect(p *commands) (e pending, silent, understood bool) {
	name := p.args[0]
	e = pending{role: roles[name], count: 1}
	silent = c.off || c.skip
	c.skip = false
	switch e.role {
	case subscribes:
		e.text, e.count = strings.ToLower(name), max(int64(len(p.args))-1+p.cut, 1)
	case selects:
		e.text = p.args[min(1, len(p.args)-1)]
	case logsIn:
		if e.text = p.user; name == "HELLO" && len(p.args) > 1 {
			e.proto = p.args[1]
		}
	case opaque:
		e.text = name
	case resets:
		silent, c.off = false, false
	case quiets:
		if e.role = ordinary; len(p.args) == 3 && strings.EqualFold(p.args[1], "REPLY") {
			return e, c.quiet(strings.ToUpper(p.args[2]), silent), !c.expected.multi
		}
	}
	return e, silent, !silent || e.role == ordinary || e.role == mentions || e.role == opaque
}

// quiet takes CLIENT REPLY in, and tells whether it is not answered.
func (c *conn) quiet(mode string, silent bool) bool {
	switch mode {
	case "ON":
		c.off = false
		return false
	case "OFF":
		c.off = true
		return true
	case "SKIP":
		c.skip = !c.off
		return true
	}
	return silent
}
