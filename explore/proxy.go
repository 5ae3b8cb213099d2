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

// link is a connection between a client and a server. Whatever goes over it waits until the scheduler lets it go. It is
// its client's end, a net.Conn that nothing ever blocks but a client without an answer, and no goroutine is in between.
type link struct {
	w            *world
	client, site int
	number       int           // among the client's connections to the site
	far          *inMemory     // the server's end: it writes what the server says to the link
	wake         chan struct{} // something has changed for the client that reads

	mu           sync.Mutex
	asked        []byte // by the client, and not looked at yet
	asks         bool   // a request waits for the scheduler
	came         []byte // from the server, and not looked at yet
	comes        bool   // a reply or message waits for the scheduler
	ready        []byte // for the client
	closed       bool
	deadline     time.Time
	alarm        *time.Timer // wakes the client that reads, to look at its deadline
	rings        time.Time   // when it does
	expected     []*exchange // requests that were sent on, in order: replies come in the same order
	subscribed   bool        // what comes is no reply any more, but was published, or confirms a subscription
	clientClosed bool        // its end: what comes is not read
	inMulti      bool
	resp3        bool // see wants
}

// exchange is a request and its reply.
type exchange struct {
	link     *link
	words    []string
	answer   []string
	answered bool
	listens  bool // it goes over a connection with subscriptions
	pushed   bool // it was published: it answers no request
	quiet    bool // of no interest to other clients: no scheduling point
	line     *line
	past     uint64 // see fingerprint: what its sender had seen, then what its server had
	sent     uint64 // what its sender had seen
	idle     bool   // it has had no effect on the server
}

// setUp are the commands with which a connection is set up, and asked whether it is still there.
var setUp = map[string]bool{"hello": true, "client": true, "auth": true, "select": true, "ping": true}

// silent are what a server sends over a connection with subscriptions that no client acts on.
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

// idle tells whether no request waits for its reply.
func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.expected) == 0
}

// close breaks the connection for both sides.
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

// Write takes what the server says.
func (l *link) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.came = append(l.came, b...)
	l.mu.Unlock()
	l.replies()
	return len(b), nil
}

// say lets the client read something.
func (l *link) say(b []byte) {
	l.mu.Lock()
	l.ready = append(l.ready, b...)
	l.mu.Unlock()
	signal(l.wake)
}

// requests takes on what the client sends, until a request waits for the scheduler.
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
				l.close() // else the last answer does
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
		// as an old server: it would cost a tenth of the schedule, and RESP 2 is spoken all the same
		case name == "hello":
			l.wants(len(f.words) > 1 && f.words[1] == "3")
			l.say([]byte("-ERR unknown command\r\n"))
		case x.quiet:
			l.send(x, name, &f, queued)
		default:
			l.wants(false) // it goes on without
			l.w.post(&event{client: l.client, x: x, site: l.site, conn: l.number, kind: request, words: f.words,
				happen: func(fate fate) { l.requested(x, name, &f, queued, fate) }})
			return
		}
	}
}

// requested is what becomes of a request that has waited.
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
	l.requests() // what is lost is never answered
}

// send sends a request on.
func (l *link) send(x *exchange, name string, f *frame, queued bool) {
	l.mu.Lock()
	if l.subscribed = x.listens; !l.subscribed {
		l.expected = append(l.expected, x)
	}
	l.mu.Unlock()
	script := name == "eval" && !queued // the scheduler sends it; a ping may come from any goroutine
	if script {
		l.w.kit.lua.effects = 0
	}
	l.far.send(name, f, queued)
	x.idle = script && l.w.kit.lua.effects == 0
}

// replies takes on what the server says, until something waits for the scheduler.
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

// replied is what becomes of a reply that has waited.
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

// answered finds what a frame of the server answers. A message answers nothing: it stands for itself.
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

// Read waits for an answer.
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

// watch sees to it that the alarm rings at the deadline or before. Few deadlines are reached, and each is later than
// the last one, so one alarm serves many.
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

// quiet stops the alarm of a connection that is over.
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

// Close notes that what the server still answers is not heard.
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

// SetWriteDeadline does nothing: no write takes any time.
func (nearEnd) SetWriteDeadline(time.Time) error { return nil }

func (nearEnd) LocalAddr() net.Addr  { return memoryAddr{} }
func (nearEnd) RemoteAddr() net.Addr { return memoryAddr{} }

// memoryAddr is where all clients and servers are.
type memoryAddr struct{}

func (memoryAddr) Network() string { return "memory" }
func (memoryAddr) String() string  { return "memory" }

// scripts are those that were ever sent whole. A server that has been told a script once needs its digest only; one
// that forgot it makes the client send it whole. Neither changes anything a lock could see, so neither is a scheduling
// point.
type scripts struct {
	mu    sync.Mutex
	texts map[string]string // by digest
}

// whole puts the text of a script into a request that names its digest. It reports whether the text is known.
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
