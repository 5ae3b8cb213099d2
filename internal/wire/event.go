// Package wire reads the traffic between programs and Redis servers. A proxy reads it between clients and a server; a
// tap reads a server's replication stream. Both pass requests and effects to a Sink, with time stamps of one clock.
// They do not judge. They keep no secrets and, except for scripts, no text longer than 256 bytes.
package wire

import "time"

// Request is a client's command with its reply. Conn and Number identify it.
type Request struct {
	Server int   // number of the proxy's server
	Conn   int64 // number of the client's connection, unique in the run, from 1
	Number int64 // number of the command on that connection, from 1
	// Client is the name that the client gave its connection; without a name, its address without the port.
	Client string
	DB     int // the selected database

	// Args has the command name in capitals, and the arguments as they were sent. An argument of more than 256 bytes
	// is replaced by "sha1:<digest>:<length>"; a script's text, only if it has more than 8192 bytes. Secrets (AUTH,
	// HELLO, ACL, CONFIG SET, MIGRATE, SENTINEL SET) become "***". Only the first 4096 arguments are kept.
	Args []string

	Call time.Duration // time at which the last byte of the request was read
	// Return is a time after the reply was read, and before its first byte is written to the client; history.Forever =
	// never.
	Return time.Duration
	Reply  Reply // for a command in a transaction: its part of the reply to EXEC
	Lost   bool  // the reply was not forwarded, because the connection broke or a fault dropped it
}

type Kind uint8

// The kinds. RESP2 has only those from Nil to Array.
const (
	Unseen      Kind = iota // no reply was seen, or it was too large to keep
	NotExecuted             // the transaction was not executed: DISCARD, WATCH, EXECABORT
	Nil
	Simple
	Error
	Integer
	Bulk
	Array
	Map // Items are key, value, key, value, ...
	Set
	Push
	Double
	Bool // Int is 0 or 1
	BigNumber
	Verbatim
)

// Reply is a server's reply, in RESP2 or RESP3.
type Reply struct {
	Kind Kind
	// text of a reply without items, even if it is a number; a digest as in Request.Args if it has more than 256 bytes
	Text  string
	Int   int64   // the number, or the announced number of items
	Items []Reply // the first 64 values (4096 for EXEC), counted with nested ones; empty for CONFIG and ACL
}

// Effect is a command in a server's replication stream, so the server has executed it.
type Effect struct {
	Server int
	At     time.Duration // time at which it was read
	Offset int64         // offset in the server's stream after the command
	DB     int
	Args   []string // as in Request.Args
	Tx     int64    // number of its MULTI..EXEC in the tap's stream, from 1; 0 = none
}

type EventKind uint8

const (
	PassedThrough EventKind = iota // from now on, a connection is forwarded without being parsed; Text says why
	TapBegan                       // from now on, effects are complete
	TapLost                        // from now on, effects are missing; Text says why
	Closed                         // the connection Conn of a client has ended
)

// Event is a change in the visibility of a connection or a server.
type Event struct {
	Kind   EventKind
	Server int
	At     time.Duration
	Text   string
	Conn   int64 // set for Closed

	Replica bool // the server is a replica, so its effects are those of its primary
	Missing bool // some effects since TapLost are missing
	Another bool // the replication ID has changed: the server was restarted, or has a new primary
	Origin       // set for TapBegan
}

// Origin tells which replication history a server's offsets belong to.
type Origin struct {
	History string // current replication ID
	Before  string // replication ID before the promotion to primary; empty if there was none
	Upto    int64  // last offset in Before that the server has
}

// Sink receives requests, effects and events from several goroutines, and must not block. Requests of one connection
// come in the order of their replies. Effects of one server come in its order.
type Sink interface {
	// Sent is called before a request is forwarded. Reply, Return and Lost must not be read until Request is called.
	// DB is correct if all earlier commands succeed.
	Sent(*Request)
	// Request is called before the reply is forwarded, or when it is lost. The pointer is that of Sent, unless DB was
	// wrong: then it is a corrected copy.
	Request(*Request)
	// Effect must not keep the pointer.
	Effect(*Effect)
	Event(Event)
}

// Break decides how to break a command; nil = not at all. It is called before the command is forwarded, with an Unseen
// reply and Return 0. It is called again before the reply is forwarded. Many goroutines may call it.
type Break func(*Request) *Action

// Action is a way to break a command.
type Action struct {
	Refuse string        // before the command is forwarded: it is not executed, and its reply is this error
	Call   func()        // called before the reply is forwarded; the reply waits until it returns
	Delay  time.Duration // delays this reply, and thus all later replies
	Cut    bool          // loses the reply, and breaks the connection on both sides
	// Drop loses this and all later replies on the connection. It stays open, so the client waits.
	Drop bool
}
