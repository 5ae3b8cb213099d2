package wire

import (
	"strconv"
	"strings"
)

// role is the effect of a command on its connection.
type role uint8

const (
	ordinary   role = iota
	begins          // begins a transaction
	executes        // executes the transaction
	discards        // discards the transaction
	selects         // selects a database
	greets          // may select the protocol, too
	resets          // resets the connection
	subscribes      // subscribes or unsubscribes; pushes confirm it
	opaque          // bytes after it are not parsed
)

func roleOf(name string) role {
	switch name {
	case "MULTI":
		return begins
	case "EXEC":
		return executes
	case "DISCARD":
		return discards
	case "SELECT":
		return selects
	case "RESET":
		return resets
	case "HELLO":
		return greets
	case "MONITOR", "SYNC", "PSYNC":
		return opaque
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		return subscribes
	}
	return ordinary
}

// pending is a command that still lacks its reply.
type pending struct {
	request *Request // nil = the entry only marks the place at which parsing ends
	role    role
	count   int64 // for a subscription: number of confirmations that must still come
	// text depends on the role: the name of the confirmations, the selected database or protocol, or the
	// reason why parsing ends
	text    string
	refused string // the error that is forwarded instead of the reply
}

// expect returns the entry for a command, with the kind of reply that it will get.
func expect(p *command) pending {
	name := p.args[0]
	e := pending{role: roleOf(name), count: 1}
	switch e.role {
	case subscribes:
		e.text, e.count = strings.ToLower(name), max(int64(len(p.args))-1+p.cut, 1)
	case selects, greets:
		e.text = p.args[min(1, len(p.args)-1)]
	case opaque:
		e.text = name
	case ordinary:
		if name == "CLIENT" && len(p.args) > 1 && strings.EqualFold(p.args[1], "REPLY") {
			e.role, e.text = opaque, "CLIENT REPLY" // from now on, some commands get no reply
		}
	}
	return e
}

// answered is a request with its reply, and the database in which it was executed.
type answered struct {
	pending
	reply Reply
	db    int
}

// selected returns the database after a successful command.
func selected(db int, e pending) int {
	switch e.role {
	case selects:
		if n, err := strconv.Atoi(e.text); err == nil {
			return n
		}
	case resets:
		return 0
	}
	return db
}

// expectation is the state of a connection under the assumption that every command so far succeeds.
type expectation struct {
	db    int
	multi bool
}

func (x *expectation) apply(e pending) {
	switch e.role {
	case begins:
		x.multi = true
	case executes, discards, resets:
		x.multi = false
	}
	x.db = selected(x.db, e)
}

// session is the state of a connection on the server, as its replies show it.
type session struct {
	db      int
	resp3   bool
	multi   bool
	queue   []pending
	subs    int64 // number of subscriptions, without those to shard channels
	shards  int64
	settled []answered // memory for the result of take
}

// take handles the reply to a command. It returns the commands that this reply answers: several for EXEC, none for a
// command that is only queued.
func (s *session) take(e pending, r Reply) []answered {
	s.settled = s.settled[:0]
	ok := r.Kind != Error
	switch {
	case s.multi && r.Kind == Simple && r.Text == "QUEUED":
		s.queue = append(s.queue, e)
		return nil
	case e.role == executes, e.role == discards && ok, e.role == resets && ok:
		s.end(r, e.role == executes && r.Kind == Array)
	}
	s.settle(e, r)
	s.multi = s.multi || e.role == begins && ok
	return s.settled
}

// end ends a transaction. If it was executed, the reply r to EXEC contains the replies to its commands.
func (s *session) end(r Reply, executed bool) {
	for i, e := range s.queue {
		reply := Reply{Kind: NotExecuted}
		switch {
		case executed && i < len(r.Items):
			reply = r.Items[i]
		case executed:
			reply = Reply{}
		}
		s.settle(e, reply)
	}
	s.multi, s.queue = false, nil
}

// settle applies an executed command to the state of the connection.
func (s *session) settle(e pending, r Reply) {
	s.settled = append(s.settled, answered{e, r, s.db})
	if r.Kind == Error || r.Kind == NotExecuted {
		return
	}
	s.db = selected(s.db, e)
	switch e.role {
	case resets:
		s.resp3, s.subs, s.shards = false, 0, 0
	case greets:
		s.resp3 = e.text == "3" || s.resp3 && e.text == "HELLO" // HELLO without a version does not change the protocol
	}
}

// isMessage tells whether a value from the server is a message, not the reply to a command. A message is a
// push or, in RESP2, a published message or the confirmation of a subscription. head is the role of the
// oldest command in flight.
func (s *session) isMessage(r Reply, head role) bool {
	if r.Kind == Push {
		return true
	}
	if s.resp3 || r.Kind != Array || len(r.Items) < 3 || s.subs+s.shards == 0 && head != subscribes {
		return false
	}
	switch name := r.Items[0].Text; name {
	case "message", "pmessage", "smessage":
		return true
	default:
		return strings.HasSuffix(name, "subscribe")
	}
}

// confirms handles the confirmation of a subscription. It returns whether the confirmed command has the given name.
func (s *session) confirms(r Reply, name string) bool {
	if len(r.Items) < 3 || !strings.HasSuffix(r.Items[0].Text, "subscribe") {
		return false
	}
	if strings.HasPrefix(r.Items[0].Text, "s") && r.Items[0].Text != "subscribe" {
		s.shards = r.Items[2].Int
	} else {
		s.subs = r.Items[2].Int
	}
	return r.Items[0].Text == name
}
