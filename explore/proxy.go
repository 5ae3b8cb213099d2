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

// link is a connection between a client and a server. Everything sent over it waits until the scheduler delivers it.
// For the client it is a net.Conn. Only reading blocks, until a reply comes. No goroutine is in between.
type link struct {
	w            *world
	client, site int
	number       int           // number among the client's connections to this site
	far          *inMemory     // the server's end; the server writes to the link through it
	wake         chan struct{} // wakes the client if it is reading

	mu       sync.Mutex
	asked    []byte // bytes from the client that were not looked at yet
	asks     bool   // a request waits for the scheduler
	came     []byte // bytes from the server that were not looked at yet
	comes    bool   // a reply or message waits for the scheduler
	ready    []byte // for the client
	closed   bool
	deadline time.Time
	alarm    *time.Timer // wakes the client that reads at its deadline
	rings    time.Time   // when it does
	expected []*exchange // requests that were delivered and have no reply yet; replies come in the same order
	// subscribed: the server now sends published messages and confirmations of subscriptions, no replies.
	subscribed   bool
	clientClosed bool // the client has closed its end, so nothing is read any more
	inMulti      bool
	resp3        bool // see wants
}

// exchange is a request and its reply.
type exchange struct {
	link     *link
	words    []string
	answer   []string
	answered bool
	listens  bool // it is on a connection with subscriptions
	pushed   bool // a published message, which is no reply to a request
	quiet    bool // other clients cannot notice it, so it is no scheduling point
	line     *line
	past     uint64 // input of fingerprint: what the sender had seen, then what the server had seen
	sent     uint64 // for fingerprint: what its sender had seen
	idle     bool   // it had no effect on the server
}

// setUp lists commands with which the client library sets up or checks a connection.
var setUp = map[string]bool{"hello": true, "client": true, "auth": true, "select": true, "ping": true}

// silent lists messages on a subscribed connection that no client reacts to.
var silent = map[string]bool{"pong": true, "unsubscribe": true}

// dial connects a client to a site.
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

// Write is called by the server with its replies.
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

// requests goes through the client's bytes until a request waits for the scheduler.
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
				l.close() // otherwise the connection is closed by the last reply
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
		// answered here, as an old server would: sending HELLO would take a tenth of the schedule's time, and RESP 2 is
		// used anyway
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

// requested executes the scheduler's decision on a request that has waited.
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
	script := name == "eval" && !queued // the scheduler calls this; only a ping may be sent by any goroutine
	if script {
		l.w.kit.lua.effects = 0
	}
	l.far.send(name, f, queued)
	x.idle = script && l.w.kit.lua.effects == 0
}

// replies goes through the server's bytes until something waits for the scheduler.
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

// replied executes the scheduler's decision on a reply that has waited.
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

// answered finds the request that a value from the server is the reply to. A published message is an exchange of its
// own.
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

// nearEnd is the client's end of a link.
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

// watch makes sure that the alarm goes off at the deadline or before. One timer serves many deadlines, because few are
// reached and each is later than the last.
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

// Write sends a request, or a part of one.
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

// memoryAddr is the address of all clients and servers.
type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }

// scripts has the texts of all scripts that were sent, by digest. A client sends a script's digest only, and its text
// if the server does not know it. No lock can notice the difference, so it is no scheduling point.
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
