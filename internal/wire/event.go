// Package wire sees the messages between programs and Redis servers: a proxy between clients and a server, and a
// tap, which reads a server's replication stream. Both tell a Sink of them, with stamps of one clock. They judge
// nothing, and keep nothing: no secret, no text over 256 bytes, and no more of a connection than is in flight.
package wire

import "time"

// Request is a command of a client with its reply. Conn and Number identify it.
type Request struct {
	Server int   // number of the server's proxy
	Conn   int64 // of the client, unique in the run, from 1
	Number int64 // of the command on that connection, from 1
	// Client is the name that the client gave its connection, or the address that it comes from, without a port.
	Client string
	DB     int // the database selected

	// Args has the name first, in capitals, and the rest as it was sent. One of more than 256 bytes is "sha1:", its
	// digest, ":" and its length. Secrets (AUTH, HELLO, ACL, CONFIG SET, MIGRATE, SENTINEL SET) are "***". Of more than
	// 4096 arguments the first are kept.
	Args []string

	Call   time.Duration // the last byte of the request was read
	Return time.Duration // the first byte of the reply is about to be written to the client; history.Forever: never
	Reply  Reply         // of a queued command that which EXEC gave it
	Lost   bool          // the connection broke, or a fault dropped the reply, before the reply was passed on
}

// Kind is the type of a reply.
type Kind uint8

// The kinds. RESP2 has the first six of those that a server sends, and nulls.
const (
	Unseen      Kind = iota // no reply was seen, or too much came to keep it
	NotExecuted             // queued, and the transaction did not take place: DISCARD, WATCH, EXECABORT
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
	Text  string  // of a reply without items, a number's too; over 256 bytes a digest as in Request.Args
	Int   int64   // the number, or how many Items were announced
	Items []Reply // the first 64 values of a reply, of EXEC 4096, however they are nested; none of CONFIG and ACL
}

// Effect is a command that a server executed, as its replication stream says.
type Effect struct {
	Server int
	At     time.Duration // it was read
	Offset int64         // the server's, behind the command
	DB     int
	Args   []string // as in Request
	Tx     int64    // number of the MULTI..EXEC in the tap's stream that it is part of, from 1; 0 = none
}

// EventKind is a kind of event of a connection or a tap.
type EventKind uint8

// The kinds of events.
const (
	PassedThrough EventKind = iota // from here on a connection's bytes are passed on unseen; Text says why
	TapBegan                       // effects are complete from here, at first or again
	TapLost                        // effects end here; Text says why
)

// Event is a change in what can be seen of a connection or a server.
type Event struct {
	Kind   EventKind
	Server int
	At     time.Duration
	Text   string

	Replica bool // the server of a tap that began follows another one: its effects are that one's
	Missing bool // some effects since TapLost are missing
	Another bool // ... because the server's history is another one: it was restarted, or follows another server
	Origin       // of a tap that began
}

// Origin is the history that a server's offsets belong to.
type Origin struct {
	History string // its replication ID
	Before  string // the one that it went on with when it was promoted; empty if it was not
	Upto    int64  // ... and the offset in that up to which it had its commands
}

// Sink takes in requests, effects and events, from several goroutines, and must not block. Requests come in the order
// of their replies on each connection. Effects come in the server's order.
type Sink interface {
	// Sent is called before a request is forwarded. Reply, Return and Lost are empty, and must not be read until
	// Request brings them. DB supposes that all commands before it succeed.
	Sent(*Request)
	// Request is called when the reply is about to be passed on, or lost. It brings the same pointer as Sent, or a
	// corrected copy where DB was supposed wrongly.
	Request(*Request)
	Effect(*Effect)
	Event(Event)
}

// Break says how to break a command, at one of two moments: before it is forwarded, when its reply is Unseen and its
// Return 0, and when its reply has come and is about to be passed on. It is called from many goroutines.
type Break func(*Request) *Action

// Action is a way to break a command; nil = it is not broken.
type Action struct {
	Refuse string        // before it is forwarded: it is not executed, and this error is its reply
	Call   func()        // called before the reply is passed on, which waits for it
	Delay  time.Duration // the reply, and those behind it, come later
	Cut    bool          // the reply is lost, and the connection breaks on both sides
	Drop   bool          // the reply is lost, and all that follow on that connection, which stays open: the client waits
}
