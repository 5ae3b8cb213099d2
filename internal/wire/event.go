// Package wire reads the traffic between programs and Redis servers. It has a proxy between clients and a server, and a
// tap, which reads a server's replication stream. Both pass what they read to a Sink, with time stamps of one clock.
// They judge and store nothing: no secret, no text longer than 256 bytes.
package wire

import "time"

// Request is a command of a client, with its reply. Conn and Number identify it.
type Request struct {
	Server int   // number of the proxy's server
	Conn   int64 // number of the client's connection, unique in the run, from 1
	Number int64 // number of the command on that connection, from 1
	// Client is the name that the client gave its connection, or its address without the port.
	Client string
	DB     int // the database selected

	// Args has the command name in capitals and the arguments as they were sent. One with more than 256 bytes is
	// replaced by "sha1:", its digest, ":" and its length. Secrets (AUTH, HELLO, ACL, CONFIG SET, MIGRATE, SENTINEL
	// SET) are "***". Only the first 4096 are kept.
	Args []string

	Call time.Duration // when the last byte of the request was read
	// when the first byte of the reply was about to be written to the client; history.Forever: never
	Return time.Duration
	Reply  Reply // for a command in a transaction, its part of the reply to EXEC
	Lost   bool  // the connection broke, or a fault dropped the reply, before the reply was forwarded
}

// Kind is the type of a reply.
type Kind uint8

// The kinds. In RESP2, servers send the first six and nulls.
const (
	Unseen      Kind = iota // no reply was seen, or it was too large to be kept
	NotExecuted             // in a transaction that was not executed: DISCARD, WATCH, EXECABORT
	Nil
	Simple
	Error
	Integer
	Bulk
	Array
	Map // Items are key, value, key, value
	Set
	Push
	Double
	Bool // Int is 0 or 1
	BigNumber
	Verbatim
)

// Reply is a server's answer, in RESP2 or RESP3.
type Reply struct {
	Kind  Kind
	Text  string  // text of a reply without items, also of a number; over 256 bytes a digest as in Request.Args
	Int   int64   // the number, or the announced number of Items
	Items []Reply // the first 64 values of a reply (4096 of EXEC) with nested ones; none of CONFIG and ACL
}

// Effect is a command that a server has executed, as its replication stream shows it.
type Effect struct {
	Server int
	At     time.Duration // it was read
	Offset int64         // offset in the server's stream, after the command
	DB     int
	Args   []string // as in Request
	Tx     int64    // number in the tap's stream of the MULTI..EXEC that it is part of, from 1; 0 = none
}

// EventKind is a kind of event of a connection or a tap.
type EventKind uint8

// The kinds of events.
const (
	PassedThrough EventKind = iota // from here on a connection is forwarded without being parsed; Text says why
	TapBegan                       // effects are complete from here, for the first time or again
	TapLost                        // effects end here; Text says why
)

// Event is a change in what can be seen of a connection or a server.
type Event struct {
	Kind   EventKind
	Server int
	At     time.Duration
	Text   string

	Replica bool // the server is a replica: its effects are those of its primary
	Missing bool // some effects since TapLost are missing
	Another bool // the replication ID has changed: the server was restarted, or has another primary
	Origin       // for TapBegan
}

// Origin says which replication history a server's offsets belong to.
type Origin struct {
	History string // its replication ID
	Before  string // the one that it had before it was promoted; empty if it was not
	Upto    int64  // offset in Before up to which it had the commands
}

// Sink receives requests, effects and events, from several goroutines, and must not block. Requests of a connection
// come in the order of their replies, effects in the order of the server.
type Sink interface {
	// Sent is called before a request is forwarded. Reply, Return and Lost are not set yet, and must not be read before
	// Request is called. DB assumes that all commands before it succeed.
	Sent(*Request)
	// Request is called when the reply is about to be forwarded, or is lost. It has the same pointer as Sent, or a
	// corrected copy if DB was wrong.
	Request(*Request)
	Effect(*Effect)
	Event(Event)
}

// Break says how to break a command. It is called at two moments: before the command is forwarded (its reply is Unseen
// and its Return 0), and before its reply is forwarded. It may be called by many goroutines.
type Break func(*Request) *Action

// Action is how to break a command; nil = not at all.
type Action struct {
	Refuse string        // before it is forwarded: it is not executed, and its reply is this error
	Call   func()        // called before the reply is forwarded, which waits for it
	Delay  time.Duration // delay of the reply, and of all later ones
	Cut    bool          // the reply is lost, and the connection breaks on both sides
	// Drop loses the reply and all later ones on that connection, which stays open, so the client waits.
	Drop bool
}
