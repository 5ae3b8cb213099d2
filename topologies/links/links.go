// Package links has TCP proxies that stand in front of servers and can delay, block or break connections. It applies
// rules to the bytes between two parties. It does not know Redis: its callers listen, and say where a connection
// leads.
package links

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Network is the set of proxies of a topology, one in front of each node. It identifies clients and peers by their
// source addresses. The suite's own connections do not pass through it. It is safe for concurrent use. A nil
// Network means that the topology has no proxies; its Apply returns an error.
type Network struct {
	sources string           // prefix of the clients' addresses
	nodes   map[string]Party // by address

	mu    sync.Mutex
	rules []*rule // active rules, the oldest first
	paths map[[2]Party]*path
	conns map[*connection]struct{}

	wg sync.WaitGroup
}

// New makes a Network for clients whose addresses begin with this prefix.
func New(sources string) *Network {
	return &Network{sources: sources, nodes: map[string]Party{}, paths: map[[2]Party]*path{},
		conns: map[*connection]struct{}{}}
}

// Add registers the address of a node. It must be called before the first connection.
func (n *Network) Add(ip string, node Party) { n.nodes[ip] = node }

// Party is one end of a connection: the name of a node, a client (see ClientParty), or a group such as AllClients.
type Party string

// Unidentified is an unknown party. Its connection is broken, so that it connects again.
const Unidentified Party = ""

const (
	AllNodes   Party = "nodes"
	AllClients Party = "clients"
)

// clientSources is the number of source addresses for clients. More clients share these addresses.
const clientSources = 200

const (
	firstSource = 32
	LastSource  = firstSource + clientSources - 1
)

const clientPrefix = "client "

// ClientParty returns the client with this Source (1 or more) in its ClientOptions.
func ClientParty(source int) Party {
	return Party(clientPrefix + strconv.Itoa((source-1)%clientSources+1))
}

// SourceIP returns the source address of a client in a Network with this prefix.
func SourceIP(prefix string, source int) string {
	return prefix + strconv.Itoa(firstSource+(source-1)%clientSources)
}

// Effect is what a rule does to traffic. If several rules apply to a connection, the greatest Effect wins.
type Effect uint8

// The effects. When Drop ends, the blocked bytes arrive, as with TCP's retransmissions. Reset loses them.
const (
	Pass  Effect = iota
	Delay        // bytes arrive later, by Latency plus up to Jitter, in order; the delays of several rules add up
	Drop         // bytes and new connections are blocked, without an error
	Reset        // open and new connections are reset; the direction does not matter
	// LoseReply passes a client's command, drops the reply and breaks the connection. It does so Count times.
	LoseReply
)

func (e Effect) String() string {
	return [...]string{"pass", "delay", "drop", "reset", "lose-reply"}[e]
}

// Rule applies an effect to the bytes between two sets of parties.
type Rule struct {
	From, To []Party
	OneWay   bool // only for bytes from From to To; for LoseReply, always the direction of the commands
	Effect   Effect
	Latency  time.Duration
	Jitter   time.Duration
	Seed     uint64 // seed of the jitter
	OneIn    int    // with Delay: one in this many messages is delayed, drawn by Seed; 0 = every message
	Count    int    // number of replies that LoseReply drops
	// Abandoned makes Delay hold a command until its client has closed the connection, and then for Latency. So the
	// command is executed after the client has given up the call. In each interval of Pace, one command of each kind
	// is held. When the rule ends, held commands are forwarded.
	Abandoned bool
	Pace      time.Duration
	Spent     func() // is called when LoseReply has dropped its last reply; may be nil
}

type rule struct {
	Rule
	replies atomic.Int64 // number of replies that the rule will still drop
	holds   *holds       // nil = no Abandoned
}

var errNoLinks = errors.New("the topology was brought up without links")

// Apply activates a rule, also for open connections, and returns a function that ends it. It returns an error if the
// rule has no party or an unknown one.
func (n *Network) Apply(r Rule) (heal func(), err error) {
	if n == nil {
		return nil, errNoLinks
	}
	if err := n.check(r); err != nil {
		return nil, err
	}
	added := &rule{Rule: r}
	added.replies.Store(int64(r.Count))
	if r.Abandoned {
		added.holds = &holds{rule: &added.Rule, next: map[string]time.Time{}, over: make(chan struct{})}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rules = append(n.rules, added)
	n.enforce()
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		added.holds.end()
		n.rules = slices.DeleteFunc(n.rules, func(other *rule) bool { return other == added })
		n.enforce()
	}, nil
}

// Rules lists the active rules, the oldest first.
func (n *Network) Rules() (list []Rule) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range n.rules {
		list = append(list, r.Rule)
	}
	return list
}

// Apart tells whether a rule blocks the traffic between two parties.
func (n *Network) Apart(a, b Party) bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := n.verdict(a, b), n.verdict(b, a)
	return max(there.effect, back.effect) >= Drop
}

func (n *Network) check(r Rule) error {
	if len(r.From) == 0 || len(r.To) == 0 {
		return errors.New("a rule needs parties on both sides")
	}
	good := slices.Sorted(maps.Values(n.nodes))
	for _, p := range slices.Concat(r.From, r.To) {
		if p == AllNodes || slices.Contains(good, p) || IsClient(p) {
			continue
		}
		return fmt.Errorf("no party %q: there are %v, %q, %q and %q", p, good, AllNodes, AllClients, ClientParty(1))
	}
	if r.Latency < 0 || r.Jitter < 0 || r.Effect > LoseReply {
		return fmt.Errorf("no rule: effect %d, latency %v, jitter %v", r.Effect, r.Latency, r.Jitter)
	}
	if r.Effect == LoseReply && (r.Count < 1 ||
		slices.ContainsFunc(r.From, func(p Party) bool { return !IsClient(p) })) {
		return fmt.Errorf("%s is from clients, once or more, not from %v %d times", r.Effect, r.From, r.Count)
	}
	return nil
}

// IsClient tells whether a party is one client or AllClients.
func IsClient(p Party) bool {
	source, err := strconv.Atoi(strings.TrimPrefix(string(p), clientPrefix))
	return p == AllClients || err == nil && p == ClientParty(max(source, 1))
}

// Party returns the party that opened a connection, which it recognizes by the source address. A client without its
// own source address is AllClients.
func (n *Network) Party(conn *net.TCPConn) Party {
	ip := conn.RemoteAddr().(*net.TCPAddr).IP.String()
	if p, ok := n.nodes[ip]; ok {
		return p
	}
	if last, ok := strings.CutPrefix(ip, n.sources); ok {
		if source, err := strconv.Atoi(last); err == nil && source >= firstSource {
			return ClientParty(source - firstSource + 1)
		}
	}
	return AllClients
}

func has(list []Party, p Party) bool {
	group := AllNodes
	if IsClient(p) {
		group = AllClients
	}
	return slices.Contains(list, p) || slices.Contains(list, group)
}

// path is one direction of traffic between two parties. All their connections share it.
type path struct {
	from, to Party
	verdict  atomic.Pointer[verdict]
}

// verdict is the combined effect of all rules on a path.
type verdict struct {
	effect  Effect
	delays  []*jitter
	loses   []*rule
	holds   []*holds
	changed chan struct{} // closed when a new verdict replaces this one
}

// path finds or makes a path. The caller holds the mutex.
func (n *Network) path(from, to Party) *path {
	key := [2]Party{from, to}
	p := n.paths[key]
	if p == nil {
		p = &path{from: from, to: to}
		p.verdict.Store(n.verdict(from, to))
		n.paths[key] = p
	}
	return p
}

// enforce recomputes all verdicts and breaks the connections that a rule resets. The caller holds the mutex.
func (n *Network) enforce() {
	for _, p := range n.paths {
		old := p.verdict.Swap(n.verdict(p.from, p.to))
		close(old.changed)
	}
	for c := range n.conns {
		if c.broken() {
			c.end()
		}
	}
}

func (n *Network) verdict(from, to Party) *verdict {
	v := &verdict{changed: make(chan struct{})}
	for _, r := range n.rules {
		there := has(r.From, from) && has(r.To, to)
		back := has(r.From, to) && has(r.To, from)
		switch {
		case r.Effect == LoseReply:
			if there {
				v.loses = append(v.loses, r)
			}
		case r.Abandoned:
			if there {
				v.holds = append(v.holds, r.holds)
			}
		case there || back && (!r.OneWay || r.Effect == Reset):
			v.effect = max(v.effect, r.Effect)
			if r.Effect == Delay {
				v.delays = append(v.delays, newJitter(r.Rule, from, to))
			}
		}
	}
	return v
}

// Go runs serve in a goroutine. Close waits for it.
func (n *Network) Go(serve func()) { n.wg.Go(serve) }

// Close breaks all connections and waits for their goroutines. Afterwards no connection may be opened.
func (n *Network) Close() {
	n.mu.Lock()
	for c := range n.conns {
		c.end()
	}
	n.mu.Unlock()
	n.wg.Wait()
}
