package topologies

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Traffic counts what clients send. A round trip is one wait for the network: a command, or a pipeline. Each connection
// counts for itself when it writes, because a shared counter would be contended. Messages that the library sends
// unasked are not counted: handshakes, requests for a primary or for a cluster's map, subscriptions.
type Traffic struct {
	mu     sync.Mutex
	open   map[*fresh]bool
	closed int64 // round trips of connections that were closed
}

// RoundTrips is how many there were so far.
func (t *Traffic) RoundTrips() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.closed
	for f := range t.open {
		n += f.trips.Load()
	}
	return n
}

// add counts a connection from now on; a nil Traffic counts nothing.
func (t *Traffic) add(f *fresh) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*fresh]bool{}
	}
	t.open[f] = true
}

// remove keeps what a connection has counted when it is closed, once.
func (t *Traffic) remove(f *fresh) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[f] {
		delete(t.open, f)
		t.closed += f.trips.Load()
	}
}

// aside are the first commands on a connection that the library keeps for itself.
var aside = []string{"sentinel", "subscribe", "psubscribe", "ssubscribe"}

// clusterMap is how the request for a cluster's map begins, which may use any connection.
var clusterMap = []byte("*2\r\n$7\r\ncluster\r\n")

// count takes what is written into account.
func (f *fresh) count(b []byte) {
	if !f.used.Load() {
		name := commandName(b)
		if slices.Contains(handshake, name) {
			return
		}
		f.aside = slices.Contains(aside, name)
		f.used.Store(true)
	}
	if !f.aside && !bytes.HasPrefix(b, clusterMap) {
		f.trips.Add(1)
	}
}

// idle are commands that change no data and that the client library sends unasked. Their answers are not lost on
// purpose, because that would test nothing.
var idle = []string{
	"cluster", "command", "info", "ping", "sentinel",
	"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe",
}

// asks tells whether bytes from a client are a command whose answer may get lost.
func (n *Node) asks(b []byte) bool {
	asks := n.engine().Asks
	return asks != nil && asks(b)
}

// kind is what kind of command bytes from a client begin with: its name, and the script that it runs; empty if it is
// none whose answer may get lost.
func (n *Node) kind(b []byte) string {
	if !n.asks(b) {
		return ""
	}
	name := commandName(b)
	if lines := bytes.SplitN(b, []byte("\r\n"), 6); strings.HasPrefix(name, "eval") && len(lines) > 5 {
		name += " " + string(lines[4])
	}
	return name
}

func asksRedis(b []byte) bool {
	name := commandName(b)
	return name != "" && !slices.Contains(handshake, name) && !slices.Contains(idle, name)
}

// commandName reads the name from the first bytes of a command: *N, $length and the name are its first lines.
func commandName(b []byte) string {
	if len(b) == 0 || b[0] != '*' {
		return ""
	}
	lines := bytes.SplitN(b, []byte("\r\n"), 4)
	if len(lines) < 4 || len(lines[1]) == 0 || lines[1][0] != '$' {
		return ""
	}
	return strings.ToLower(string(lines[2]))
}
