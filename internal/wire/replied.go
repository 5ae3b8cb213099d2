package wire

import (
	"cmp"
	"errors"
	"net"
	"time"

	"hammerlock/history"
)

// replies forwards the server's replies until the connection ends.
func (c *conn) replies() {
	f := newFlow(c.server, c.client)
	f.long = func() {
		if c.began == 0 {
			c.began = c.proxy.run.Clock.Stamp()
		}
	}
	var err error
	for err == nil {
		err = c.reply(f)
	}
	if errors.Is(err, errProtocol) {
		err = c.unseen("a reply is not RESP")
	}
	if errors.Is(err, errUnparsed) {
		c.forgo(false)
	}
	if err = f.rest(err); f.refused {
		c.end(err != nil)
		return
	}
	// the client may still be reading the server's last bytes
	if half, ok := c.client.(interface{ CloseWrite() error }); c.gone.Load() || !ok || err != nil ||
		half.CloseWrite() != nil {
		c.end(err != nil && !c.gone.Load())
	} else {
		_ = c.client.SetReadDeadline(time.Now().Add(lastWords))
	}
}

func (c *conn) reply(f *flow) error {
	if err := f.need(1); err != nil {
		return err
	}
	if c.ending.Load() {
		if head, _ := c.head(); head.role == opaque {
			return c.unseen(head.text)
		}
	}
	limit := maxValues
	if c.session.multi {
		limit = maxQueued
	}
	r, err := f.reply(&limit, 0)
	if err == nil {
		err = c.replied(f, r)
	}
	if err == nil {
		f.done()
	}
	return err
}

// replied handles a complete reply before it is forwarded.
func (c *conn) replied(f *flow, r Reply) error {
	defer func() { c.began = 0 }()
	head, waited := c.head()
	if c.session.isMessage(r, head.role) {
		return c.settle(f, c.confirmed(head, r))
	}
	for head.role == subscribes && r.Kind != Error { // the subscription was not confirmed
		c.pop(true)
		c.answer(head.request, history.Forever, false)
		head, waited = c.head()
	}
	if !waited || head.role == opaque {
		return c.unseen(cmp.Or(head.text, "a reply came without a request"))
	}
	c.pop(true) // for a subscription, an error is the only reply
	if head.refused != "" {
		r = Reply{Kind: Error, Text: head.refused}
	}
	if err := c.settle(f, c.session.take(head, r)); err != nil || head.refused == "" {
		return err
	}
	return f.replace("-" + head.refused + "\r\n")
}

// confirmed handles a message that may confirm a subscription. After the last confirmation, it returns the request.
func (c *conn) confirmed(head pending, r Reply) []answered {
	if !c.session.confirms(r, head.text) || head.role != subscribes {
		return nil
	}
	e, last := c.pop(false)
	if !last {
		return nil
	}
	return c.session.take(e, r)
}

// settle completes the requests that a reply answers. It asks how to break each request, stamps it and passes it to
// the sink.
func (c *conn) settle(f *flow, list []answered) (err error) {
	lost := c.lost || c.gone.Load()
	for i, a := range list {
		r := a.request
		if r.DB != a.db {
			other := *r
			r = &other
			r.DB, list[i].request = a.db, r
		}
		if r.Reply = a.reply; secretive(r) {
			r.Reply.Text, r.Reply.Items = "", nil
		}
		if c.proxy.breaks != nil && !lost && !f.torn && a.refused == "" {
			r.Return = f.stamp(c.proxy.run.Clock)
			err = c.act(f, c.proxy.breaks(r))
			lost = err != nil || c.lost
		}
	}
	at := c.began
	if at == 0 {
		at = f.stamp(c.proxy.run.Clock)
	}
	if lost {
		at = history.Forever
	}
	for _, a := range list {
		c.answer(a.request, at, lost)
	}
	return err
}

func secretive(r *Request) bool {
	return r.Args[0] == "ACL" || r.Args[0] == "CONFIG" && r.Reply.Kind != Error && r.Reply.Kind != Simple
}

var errCut = errors.New("a fault cut the connection")

// act applies an Action to the current reply. Earlier replies are forwarded before that.
func (c *conn) act(f *flow, do *Action) error {
	if do == nil {
		return nil
	}
	f.read = true // the action may take time, so ask the clock again
	if err := f.pass(f.start); err != nil {
		return err
	}
	if do.Call != nil {
		do.Call()
	}
	if do.Delay > 0 && !wait(c.done, do.Delay) {
		return net.ErrClosed
	}
	if do.Cut {
		c.end(atOnce)
		return errCut
	}
	if do.Drop {
		f.muted, c.lost = true, true
	}
	return nil
}

// answer sets the return time of a request and passes it to the sink. The argument lost means that the client gets no
// reply.
func (c *conn) answer(r *Request, at time.Duration, lost bool) {
	c.size.Add(-sizeOf(r))
	r.Return, r.Lost = at, lost
	c.proxy.run.Sink.Request(r)
}
