package wire

import (
	"strconv"
	"strings"
)

// role is what a command does to its connection, besides being answered.
type role uint8

const (
	ordinary   role = iota
	mentions        // its reply names addresses, or the command does
	begins          // a transaction
	executes        // the transaction
	discards        // the transaction
	selects         // a database
	logsIn          // and may choose the protocol: HELLO without AUTH logs nobody in
	resets          // the connection
	subscribes      // or unsubscribes: pushes confirm it
	quiets          // CLIENT, which may want no replies
	opaque          // what follows is not parsed
)

var roles = map[string]role{
	"MULTI": begins, "EXEC": executes, "DISCARD": discards, "SELECT": selects, "RESET": resets,
	"AUTH": logsIn, "HELLO": logsIn, "CLIENT": quiets, "MONITOR": opaque, "SYNC": opaque, "PSYNC": opaque,
	"SUBSCRIBE": subscribes, "PSUBSCRIBE": subscribes, "SSUBSCRIBE": subscribes,
	"UNSUBSCRIBE": subscribes, "PUNSUBSCRIBE": subscribes, "SUNSUBSCRIBE": subscribes,
	"CLUSTER": mentions, "SENTINEL": mentions, "ROLE": mentions, "REPLICAOF": mentions, "SLAVEOF": mentions,
	"MIGRATE": mentions, "FAILOVER": mentions,
}

// pending is a command whose reply has not come, or a number of ordinary ones that are not kept.
type pending struct {
	request *Request // nil = not kept
	role    role
	count   int64  // of commands; of a subscription: confirmations to come
	text    string // of subscribes the confirmations' name; of selects and logsIn what is chosen; of opaque why it is that
	proto   string // of HELLO
}

// answered is a request with its reply, and what its connection was like when it was executed.
type answered struct {
	pending
	reply Reply
	state
	multi int64
}

// state is what commands change of a connection and requests are executed under.
type state struct {
	db   int
	user string
}

// apply takes in a command that succeeds.
func (s *state) apply(e pending) {
	switch e.role {
	case selects:
		if db, err := strconv.Atoi(e.text); err == nil {
			s.db = db
		}
	case logsIn:
		if s.user = e.text; s.user == "default" {
			s.user = ""
		}
	case resets:
		*s = state{}
	}
}

// expectation is a connection as it will be if all that was sent succeeds.
type expectation struct {
	state
	multi bool
	tx    int64
}

// apply takes in a command, and returns the number of the transaction in which it is queued.
func (x *expectation) apply(e pending) (queued int64) {
	switch e.role {
	case begins:
		if !x.multi {
			x.multi, x.tx = true, x.tx+1
		}
		return 0
	case executes, discards, resets:
		x.multi = false
	}
	x.state.apply(e)
	if x.multi {
		return x.tx
	}
	return 0
}

// session is what a server keeps of a connection, as its replies say.
type session struct {
	state
	resp3   bool
	multi   bool
	tx      int64 // number of the last transaction
	queue   []pending
	subs    int64 // subscriptions, but for those to shards
	shards  int64
	settled []answered // what take answers, used again
}

// take takes a reply to a command in, and returns the commands that are answered by it: several by EXEC, none when the
// command is queued. It is false where the connection cannot be understood any more.
func (s *session) take(e pending, r Reply) (list []answered, understood bool) {
	s.settled = s.settled[:0]
	ok := r.Kind != Error
	switch {
	case s.multi && r.Kind == Simple && r.Text == "QUEUED":
		return nil, s.enqueue(e)
	case e.role == begins && ok:
		s.settle(e, r, 0)
		s.multi, s.tx = true, s.tx+1
	case e.role == executes, e.role == discards && ok, e.role == resets && ok:
		s.end(r, e.role == executes && r.Kind == Array)
		s.settle(e, r, 0)
	default:
		s.settle(e, r, 0)
	}
	return s.settled, true
}

func (s *session) enqueue(e pending) (understood bool) {
	if last := len(s.queue) - 1; e.request == nil && e.role == ordinary && last >= 0 && s.queue[last].request == nil &&
		s.queue[last].role == ordinary {
		s.queue[last].count += e.count
		return true
	}
	s.queue = append(s.queue, e)
	return e.role != subscribes
}

// end ends a transaction. What was queued has the replies that EXEC brings, if it did take place.
func (s *session) end(r Reply, executed bool) {
	n := int64(0)
	for _, e := range s.queue {
		reply := Reply{Kind: NotExecuted}
		switch {
		case executed && n < int64(len(r.Items)):
			reply = r.Items[n]
		case executed:
			reply = Reply{}
		}
		n += e.count
		s.settle(e, reply, s.tx)
	}
	s.multi, s.queue = false, nil
}

// settle takes in what a command that was executed does to the connection.
func (s *session) settle(e pending, r Reply, multi int64) {
	s.settled = append(s.settled, answered{e, r, s.state, multi})
	if r.Kind == Error || r.Kind == NotExecuted {
		return
	}
	s.apply(e)
	switch {
	case e.role == resets:
		s.resp3, s.subs, s.shards = false, 0, 0
	case e.proto != "":
		s.resp3 = e.proto == "3"
	}
}

// isMessage tells whether a value is none of the replies that are counted off against commands: a push, or in RESP2 a
// message to a subscriber, or the confirmation of a subscription.
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

// confirms takes the confirmation of a subscription in, and tells whether it is one for a command of that name.
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

// ofSentinel tells whether a message is on a channel of a sentinel, like +switch-master.
func ofSentinel(r Reply) bool {
	i := 1
	if r.Items[0].Text == "pmessage" {
		i = 2
	}
	return i < len(r.Items)-1 && strings.IndexAny(r.Items[i].Text, "+-") == 0
}
