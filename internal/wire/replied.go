package wire

import (
	"errors"
	"io"
	"net"
	"time"

	"hammerlock/history"
)

// roomy tells whether one more request can be kept. Once one cannot, none is until half of them are answered.
func (c *conn) roomy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	part := 1
	if c.full {
		part = 2
	}
	c.full = c.kept >= maxInFlight/part || c.size >= maxFlightSize/part || len(c.flight)-c.first >= maxPending
	return !c.full
}

// push notes a command that is about to be forwarded.
func (c *conn) push(e pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.request != nil {
		c.kept++
		c.size += sizeOf(e.request)
	} else if last := len(c.flight) - 1; e.role == ordinary && last >= c.first && c.flight[last].request == nil &&
		c.flight[last].role == ordinary {
		c.flight[last].count++
		return
	}
	if len(c.flight)-c.first == maxPending {
		e = pending{role: opaque, text: "too many commands are in flight"}
		c.ending.Store(true)
	}
	if len(c.flight)-c.first > maxPending {
		return
	}
	if c.first > chunkSize && c.first > len(c.flight)/2 {
		c.flight = append(c.flight[:0], c.flight[c.first:]...)
		c.first = 0
	}
	c.flight = append(c.flight, e)
}

// sizeOf is about how much memory a request takes.
func sizeOf(r *Request) (n int) {
	for _, a := range r.Args {
		n += len(a) + 16
	}
	return n
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

// pop takes one reply, or confirmation, off the oldest command in flight; what is popped has its last one.
func (c *conn) pop() (e pending, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.flight[c.first]
	p.count--
	if e = *p; p.count > 0 {
		e.count = 1
		return e, false
	}
	*p = pending{}
	if c.first++; c.first == len(c.flight) {
		if c.flight, c.first = c.flight[:0], 0; cap(c.flight) > chunkSize {
			c.flight = nil
		}
	}
	e.count = 1
	return e, true
}

func (c *conn) drain() []pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.flight[c.first:]
	c.flight, c.first = nil, 0
	return list
}

// replies carries what the server sends.
func (c *conn) replies() {
	f, p := &flow{from: c.server, to: c.client}, &replies{}
	f.long = func() bool {
		if head, _ := c.head(); head.role == mentions && c.proxy.run.Addresses != nil {
			return true
		}
		if c.began == 0 {
			c.began = c.proxy.run.Clock.Stamp()
		}
		return false
	}
	err := f.run(func(b []byte) (int, bool, error) {
		if c.ending.Load() {
			if head, _ := c.head(); head.role == opaque {
				c.unseen(head.text)
				return 0, false, errUnparsed
			}
		}
		if p.limit = maxValues; c.session.multi {
			p.limit = maxQueued
		}
		return p.next(b)
	}, func() error { return c.replied(f, p) })
	if errors.Is(err, errProtocol) {
		c.event(Event{Kind: NotKept, Count: 1, Text: "a reply that is not RESP"})
		c.unseen("a reply is not RESP")
		err = errUnparsed
	}
	if errors.Is(err, errUnparsed) {
		c.forgo(false)
		if err = f.pass(f.end); err == nil {
			_, err = io.Copy(f, c.server)
		}
	} else if errors.Is(err, io.EOF) {
		err = f.pass(f.end)
	}
	if f.refused {
		c.ends("client: ", err)
		return
	}
	c.serverEnded(err)
}

// serverEnded ends the client's side as the server ended its own. A client may still read what came last.
func (c *conn) serverEnded(err error) {
	if c.gone.Load() {
		c.ends("", nil)
		return
	}
	half, ok := c.client.(interface{ CloseWrite() error })
	if !ok || err != nil || half.CloseWrite() != nil {
		c.ends("server: ", err)
		return
	}
	c.mu.Lock()
	c.because = "the server closed it"
	c.mu.Unlock()
	_ = c.client.SetReadDeadline(time.Now().Add(lastWords))
}

var errCut = errors.New("a rule cut the connection")

// replied takes in a reply that is complete and about to be passed on.
func (c *conn) replied(f *flow, p *replies) error {
	r := p.reply
	p.reply = Reply{}
	defer func() { c.began = 0 }()
	head, waited := c.head()
	message := c.session.isMessage(r, head.role)
	understood := true
	var list []answered
	switch {
	case message:
		list = c.confirmed(head, r)
	default:
		for head.role == subscribes && r.Kind != Error { // it was not confirmed
			e, _ := c.pop()
			if e.request != nil {
				c.answer(e.request, history.Forever, false)
			}
			head, waited = c.head()
		}
		if !waited {
			c.event(Event{Kind: NotKept, Count: 1, Text: "a reply without a request"})
			c.unseen("a reply came without a request")
			return errUnparsed
		}
		e, _ := c.pop()
		list, understood = c.session.take(e, r)
	}
	if err := c.settle(f, list); err != nil {
		return err
	}
	if head.role == mentions && !message || r.Kind == Error || message && ofSentinel(r) {
		if err := c.proxy.rewrite(f, toProxy); err != nil {
			return err
		}
	}
	if !understood {
		c.unseen("a subscription is queued in a transaction")
		return errUnparsed
	}
	return nil
}

// confirmed takes a message in, which may be the last confirmation that a subscription waits for.
func (c *conn) confirmed(head pending, r Reply) []answered {
	if !c.session.confirms(r, head.text) || head.role != subscribes {
		return nil
	}
	e, last := c.pop()
	if !last {
		return nil
	}
	list, _ := c.session.take(e, r)
	return list
}

// settle completes requests whose replies have come: it applies the rules, stamps them and hands them on.
func (c *conn) settle(f *flow, list []answered) (err error) {
	lost := c.lost || c.gone.Load()
	for i, a := range list {
		r := a.request
		if r == nil {
			continue
		}
		if r.DB != a.db || r.User != a.user || r.Multi != a.multi {
			other := *r
			r = &other
			r.DB, r.User, r.Multi = a.db, a.user, a.multi
			list[i].request = r
		}
		r.Reply = a.reply
		if secretive(r) {
			r.Reply.Text, r.Reply.Items = "", nil
		}
		for _, do := range c.rulesMet(r, f, lost) {
			if err = c.act(f, do); err != nil || c.lost {
				lost = true
				break
			}
		}
	}
	at := c.began
	if at == 0 {
		at = c.proxy.run.Clock.Stamp()
	}
	if lost {
		at = history.Forever
	}
	for _, a := range list {
		if a.request != nil {
			c.answer(a.request, at, lost)
		}
	}
	return err
}

// secretive tells whether a reply may have secrets in it.
func secretive(r *Request) bool {
	return r.Args[0] == "ACL" || r.Args[0] == "CONFIG" && r.Reply.Kind != Error && r.Reply.Kind != Simple
}

// rulesMet are the actions for a reply, unless it is lost already or some of it has been passed on.
func (c *conn) rulesMet(r *Request, f *flow, lost bool) []Action {
	if lost || f.torn {
		return nil
	}
	return c.proxy.rules.met(r)
}

// act does what a rule says, when all before the reply has been passed on.
func (c *conn) act(f *flow, do Action) error {
	if err := f.pass(f.start); err != nil {
		return err
	}
	switch do.effect {
	case dropReply:
		f.muted, c.lost = true, true
	case cut:
		c.ends("", errCut)
		return errCut
	case call:
		do.call()
	case delay:
		timer := time.NewTimer(do.delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.done:
			return net.ErrClosed
		}
	}
	return nil
}

// answer hands a request on that is answered, or lost.
func (c *conn) answer(r *Request, at time.Duration, lost bool) {
	c.mu.Lock()
	c.kept--
	c.size -= sizeOf(r)
	c.mu.Unlock()
	r.Return, r.Lost = at, lost
	c.proxy.run.Sink.Request(r)
}
