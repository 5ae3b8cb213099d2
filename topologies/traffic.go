package topologies

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Traffic counts the round trips of clients: one for each command or pipeline. Each connection has its own counter,
// because a shared one would be contended. Requests of the library itself do not count: handshakes, requests for a
// primary or a cluster's map, subscriptions.
type Traffic struct {
	mu     sync.Mutex
	open   map[*fresh]bool
	closed int64 // round trips of closed connections
}

func (t *Traffic) RoundTrips() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.closed
	for f := range t.open {
		n += f.trips.Load()
	}
	return n
}

// add starts to count a connection's round trips. It does nothing on a nil Traffic.
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

// remove forgets a closed connection and adds its count to the total. A second call has no effect.
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

// aside lists the first commands on connections that the library uses for itself.
var aside = []string{"sentinel", "subscribe", "psubscribe", "ssubscribe"}

// clusterMap begins a request for a cluster's map, which the library may send on any connection.
var clusterMap = []byte("*2\r\n$7\r\ncluster\r\n")

// count counts the round trip of a request that is written.
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

// idle lists commands that change no data, or that the library itself sends. The fault drop-reply does not drop
// their replies, because that would test nothing about a lock.
var idle = []string{
	"cluster", "command", "info", "ping", "sentinel",
	"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe",
}

// asks tells whether bytes from a client are a command whose reply may be dropped.
func (n *Node) asks(b []byte) bool {
	asks := n.engine().Asks
	return asks != nil && asks(b)
}

// kind returns the name of the command at the beginning of the bytes, and the script that it runs; empty if its reply
// may not be dropped.
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

// commandName reads a command's name from its first bytes; the first lines are *N, $LENGTH and the name.
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
