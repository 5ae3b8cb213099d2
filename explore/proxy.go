package explore

import (
	"crypto/sha1"
	"encoding/hex"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// link is a connection between a client and a server. Everything that is sent waits until the scheduler delivers it.
// For the client it is a net.Conn on which only reading blocks. It has no goroutine.
type link struct {
	w            *world
	client, site int
	number       int           // number of this connection among the client's connections to the site
	far          *inMemory     // the server's end, which writes to the link
	wake         chan struct{} // wakes the client if it is reading

	mu       sync.Mutex
	asked    []byte // bytes from the client that were not parsed yet
	asks     bool   // a request waits for the scheduler
	came     []byte // bytes from the server that were not parsed yet
	comes    bool   // a reply or message waits for the scheduler
	ready    []byte // bytes for the client
	closed   bool
	deadline time.Time
	alarm    *time.Timer // wakes the reading client at its deadline
	rings    time.Time   // when the alarm rings
	expected []*exchange // delivered requests without a reply; replies come in the same order
	// subscribed: the server sends published messages and confirmations of subscriptions, no replies.
	subscribed   bool
	clientClosed bool // the client has closed its end and reads nothing any more
	inMulti      bool
	resp3        bool // see wants
}

type exchange struct {
	link     *link
	words    []string
	answer   []string
	answered bool
	listens  bool // its connection has subscriptions
	pushed   bool // a published message, which is no reply
	quiet    bool // no scheduling point, because other clients cannot notice it
	line     *line
	past     uint64 // hash of what the sender had seen; after delivery, of what the server had seen
	sent     uint64 // hash of what the sender had seen
	idle     bool   // the request had no effect on the server
}

// setUp lists the commands with which the client library sets up or checks a connection.
var setUp = map[string]bool{"hello": true, "client": true, "auth": true, "select": true, "ping": true}

// silent lists the messages on a subscribed connection to which no client reacts.
var silent = map[string]bool{"pong": true, "unsubscribe": true}

func (w *world) dial(client, site int, to *memory) net.Conn {
	w.mu.Lock()
	w.dialled[client][site]++
	l := &link{w: w, client: client, site: site, number: w.dialled[client][site], wake: make(chan struct{}, 1)}
	w.mu.Unlock()
	l.far = to.connect(l)
	if !w.join(l) {
		l.close()
	}
	return nearEnd{l}
}

// idle tells whether every request has its reply.
func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.expected) == 0
}

// close breaks the connection for both ends.
func (l *link) close() {
	l.mu.Lock()
	was := l.closed
	l.closed = true
	l.quiet()
	l.mu.Unlock()
	if !was {
		l.far.close()
		signal(l.wake)
	}
}

func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.came = append(l.came, b...)
	l.mu.Unlock()
	l.replies()
	return len(b), nil
}

// say passes bytes to the client.
func (l *link) say(b []byte) {
	l.mu.Lock()
	l.ready = append(l.ready, b...)
	l.mu.Unlock()
	signal(l.wake)
}

// requests parses the client's bytes until a request waits for the scheduler.
func (l *link) requests() {
	for {
		l.mu.Lock()
		if l.asks || l.closed {
			l.mu.Unlock()
			return
		}
		f, some := cut(&l.asked)
		if !some || len(f.words) == 0 {
			over := l.clientClosed && len(l.expected) == 0
			l.mu.Unlock()
			if over {
				l.close() // otherwise the last reply closes the connection
			}
			return
		}
		known := l.w.kit.whole(&f)
		name := strings.ToLower(f.words[0])
		x := &exchange{link: l, words: f.words, quiet: setUp[name] || name == "multi" || l.inMulti && name != "exec"}
		x.listens = l.subscribed || name == "subscribe"
		queued := l.inMulti
		if known {
			l.inMulti = name == "multi" || l.inMulti && name != "exec" && name != "discard"
		}
		l.asks = known && !x.quiet
		l.mu.Unlock()
		switch {
		case !known:
			l.say([]byte("-NOSCRIPT No matching script.\r\n"))
		// answered here, as an old server does: see ungreeted
		case name == "hello":
			l.wants(len(f.words) > 1 && f.words[1] == "3")
			l.say([]byte("-ERR unknown command\r\n"))
		case x.quiet:
			l.send(x, name, &f, queued)
		default:
			l.wants(false) // the client works without RESP 3
			l.w.post(&event{client: l.client, x: x, site: l.site, conn: l.number, kind: request, words: f.words,
				happen: func(fate fate) { l.requested(x, name, &f, queued, fate) }})
			return
		}
	}
}

// requested executes the scheduler's decision on a request.
func (l *link) requested(x *exchange, name string, f *frame, queued bool, fate fate) {
	l.mu.Lock()
	l.asks = false
	l.mu.Unlock()
	switch fate {
	case goes:
		x.line = l.w.executed(l.client, l.site, f.words)
		l.send(x, name, f, queued)
	case refused:
		l.say([]byte("-" + refusal + "\r\n"))
	case broken:
		l.close()
	}
	l.requests() // a lost request gets no reply
}

// send delivers a request to the server.
func (l *link) send(x *exchange, name string, f *frame, queued bool) {
	l.mu.Lock()
	if l.subscribed = x.listens; !l.subscribed {
		l.expected = append(l.expected, x)
	}
	l.mu.Unlock()
	script := name == "eval" && !queued // only the scheduler sends scripts; others send pings
	if script {
		l.w.kit.lua.effects = 0
	}
	l.far.send(name, f, queued)
	x.idle = script && l.w.kit.lua.effects == 0
}

// replies parses the server's bytes until a reply or message waits for the scheduler.
func (l *link) replies() {
	for {
		l.mu.Lock()
		if l.comes || l.closed {
			l.mu.Unlock()
			return
		}
		f, some := cut(&l.came)
		if !some {
			l.mu.Unlock()
			return
		}
		x := l.answered(&f)
		l.comes = !x.quiet
		left := l.clientClosed
		l.mu.Unlock()
		switch {
		case x.quiet && left:
			l.close()
		case x.quiet:
			l.say(f.bytes)
		default:
			l.w.post(&event{client: l.client, x: x, site: l.site, conn: l.number, kind: reply, words: x.words,
				happen: func(fate fate) { l.replied(f.bytes, fate) }})
			return
		}
	}
}

// replied executes the scheduler's decision on a reply.
func (l *link) replied(b []byte, fate fate) {
	l.mu.Lock()
	l.comes = false
	left := l.clientClosed
	l.mu.Unlock()
	switch {
	case fate == broken, left && fate == goes:
		l.close()
	case fate == goes:
		l.say(b)
	}
	l.replies()
}

// answered finds the request that a value from the server answers. A published message answers none, so it gets
// an exchange of its own.
func (l *link) answered(f *frame) *exchange {
	if l.subscribed {
		return &exchange{link: l, words: f.words, listens: true, pushed: true, quiet: silent[f.words[0]]}
	}
	x := l.expected[0]
	l.expected = l.expected[1:]
	if !x.quiet && unknownCommand.Match(f.bytes) {
		l.w.lack(x.words[0])
	}
	x.answer, x.answered, x.quiet = f.words, true, x.quiet || l.clientClosed
	l.w.trace.answered(x)
	return x
}

type nearEnd struct{ *link }

// Read waits for bytes from the server.
func (c nearEnd) Read(b []byte) (int, error) {
	for {
		c.mu.Lock()
		n := copy(b, c.ready)
		c.ready = c.ready[n:]
		left, closed, deadline := c.clientClosed, c.closed, c.deadline
		late := !deadline.IsZero() && !time.Now().Before(deadline)
		if n == 0 && !late && !deadline.IsZero() {
			c.watch()
		}
		c.mu.Unlock()
		switch {
		case n > 0 || len(b) == 0:
			return n, nil
		case left:
			return 0, io.ErrClosedPipe
		case closed:
			return 0, io.EOF
		case late:
			return 0, os.ErrDeadlineExceeded
		}
		<-c.wake
	}
}

// watch makes sure that the alarm rings at the deadline, or earlier: then Read sets it again. The same timer serves
// many deadlines: few are reached, and each is later than the last.
func (c nearEnd) watch() {
	switch {
	case c.closed || c.clientClosed:
		return
	case c.alarm == nil:
		c.alarm = time.AfterFunc(time.Until(c.deadline), func() { signal(c.wake) })
	case time.Now().Before(c.rings) && !c.deadline.Before(c.rings):
		return
	default:
		c.alarm.Reset(time.Until(c.deadline))
	}
	c.rings = c.deadline
}

// quiet stops the alarm of a connection that has ended.
func (l *link) quiet() {
	if l.alarm != nil {
		l.alarm.Stop()
	}
}

func (c nearEnd) Write(b []byte) (int, error) {
	c.mu.Lock()
	gone := c.closed || c.clientClosed
	if !gone {
		c.asked = append(c.asked, b...)
	}
	c.mu.Unlock()
	if gone {
		return 0, io.ErrClosedPipe
	}
	c.requests()
	return len(b), nil
}

// Close notes that the client reads nothing any more.
func (c nearEnd) Close() error {
	c.mu.Lock()
	c.clientClosed = true
	c.quiet()
	c.mu.Unlock()
	signal(c.wake)
	c.requests()
	return nil
}

func (c nearEnd) SetDeadline(t time.Time) error {
	c.mu.Lock()
	sooner := !t.IsZero() && (c.rings.IsZero() || t.Before(c.rings) || !time.Now().Before(c.rings))
	c.deadline = t
	c.mu.Unlock()
	if sooner {
		signal(c.wake)
	}
	return nil
}

func (c nearEnd) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline does nothing: writing takes no time.
func (nearEnd) SetWriteDeadline(time.Time) error { return nil }

func (nearEnd) LocalAddr() net.Addr  { return memoryAddr{} }
func (nearEnd) RemoteAddr() net.Addr { return memoryAddr{} }

type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }

// scripts has the texts of all scripts that were sent. A client sends the digest of a script, and its text only if
// the server does not know the digest. No lock can notice the difference, so this is no scheduling point.
type scripts struct {
	mu    sync.Mutex
	texts map[string]string // by digest
}

// whole replaces the digest in a request by the text of the script. It returns false if the text is unknown.
func (s *scripts) whole(f *frame) bool {
	name := strings.ToLower(f.words[0])
	if name != "eval" && name != "evalsha" || len(f.words) < 2 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "eval" {
		sum := sha1.Sum([]byte(f.words[1]))
		s.texts[hex.EncodeToString(sum[:])] = f.words[1]
		return true
	}
	text, ok := s.texts[strings.ToLower(f.words[1])]
	if ok {
		f.words = append([]string{"eval", text}, f.words[2:]...)
	}
	return ok
}
