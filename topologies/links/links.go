// Package links is what stands between the nodes of a deployment and those that connect to them: TCP proxies, which
// identify both ends, and apply rules to the bytes. It knows neither Redis nor servers: others listen, and say where a
// connection leads to.
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

// Network is every link of a topology: a TCP proxy in front of each node, which identifies clients and peers by their
// source addresses and applies rules to what they send and receive. The suite's own connections bypass it. Its methods
// may be called from several goroutines; a nil Network, of a topology without links, refuses.
type Network struct {
	sources string           // how the addresses of clients begin
	nodes   map[string]Party // by address

	mu    sync.Mutex
	rules []*rule // those in force, the oldest first
	paths map[[2]Party]*path
	conns map[*connection]struct{}

	wg sync.WaitGroup
}

// New makes a network of clients whose addresses begin with a prefix.
func New(sources string) *Network {
	return &Network{sources: sources, nodes: map[string]Party{}, paths: map[[2]Party]*path{},
		conns: map[*connection]struct{}{}}
}

// Add says which node has an address, before the first connection.
func (n *Network) Add(ip string, node Party) { n.nodes[ip] = node }

// Party is one end of a connection: a node by its name, a client by ClientParty, or all of a kind.
type Party string

// Unidentified is a party of which nothing was found. Such a connection is broken off, to be made again.
const Unidentified Party = ""

// The groups.
const (
	AllNodes   Party = "nodes"
	AllClients Party = "clients"
)

// clientSources is how many clients have an address of their own. Later ones share the addresses of earlier ones.
const clientSources = 200

// The addresses of clients follow those of nodes.
const (
	firstSource = 32
	LastSource  = firstSource + clientSources - 1
)

const clientPrefix = "client "

// ClientParty is the client whose ClientOptions have that Source, which is 1 or more.
func ClientParty(source int) Party {
	return Party(clientPrefix + strconv.Itoa((source-1)%clientSources+1))
}

// SourceIP is the address of a client's source, with the prefix of the addresses of a network.
func SourceIP(prefix string, source int) string {
	return prefix + strconv.Itoa(firstSource+(source-1)%clientSources)
}

// Effect is what a rule does to traffic. If several rules apply, the greatest effect counts.
type Effect uint8

// The effects. Messages that a dropped link holds back arrive when it heals, as with TCP's retransmissions. A reset
// link loses them with its connections.
const (
	Pass      Effect = iota
	Delay            // bytes arrive later by Latency and up to Jitter more, in order; delays add up
	Drop             // bytes and new connections are held back, without an error
	Reset            // connections are broken, new ones as soon as they are made; it needs no direction
	LoseReply        // a command of a client is executed, its answer is lost and the connection broken, Count times
)

// String is the effect's name.
func (e Effect) String() string {
	return [...]string{"pass", "delay", "drop", "reset", "lose-reply"}[e]
}

// Rule says what happens to bytes between two sets of parties.
type Rule struct {
	From, To []Party
	OneWay   bool // only the bytes that From sends to To; of LoseReply always the commands
	Effect   Effect
	Latency  time.Duration
	Jitter   time.Duration
	Seed     uint64 // draws the jitter
	OneIn    int    // Delay delays one of this many messages that it could delay, drawn by Seed; 0 = each
	Count    int    // replies that LoseReply loses
	// Abandoned, of Delay, delays commands of clients until the client has closed the connection, which gives the call
	// up, and by Latency more: one of each kind of command every Pace. Messages that are held back arrive when the rule
	// ends.
	Abandoned bool
	Pace      time.Duration
	Spent     func() // called when LoseReply has lost the last of them, if it is not nil
}

// rule is a Rule in force.
type rule struct {
	Rule
	replies atomic.Int64 // that are still to be lost
	holds   *holds       // nil = none
}

var errNoLinks = errors.New("the topology was brought up without links")

// Apply puts a rule in force, for open connections too, and returns what removes it. It refuses a rule without parties,
// or with one that does not exist.
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

// Rules are those in force, the oldest first.
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

// Apart tells whether a rule cuts two parties off from each other.
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

// IsClient tells whether a party is one client, all of them, or one without a source address of its own.
func IsClient(p Party) bool {
	source, err := strconv.Atoi(strings.TrimPrefix(string(p), clientPrefix))
	return p == AllClients || err == nil && p == ClientParty(max(source, 1))
}

// Party identifies who made a connection, by the address. A client without a source address of its own belongs to
// AllClients only.
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

// path is one direction between two parties; all their connections share it.
type path struct {
	from, to Party
	verdict  atomic.Pointer[verdict]
}

// verdict is the joint effect of the rules on a path.
type verdict struct {
	effect  Effect
	delays  []*jitter
	loses   []*rule
	holds   []*holds
	changed chan struct{} // closed when another verdict takes its place
}

// path finds or makes a path; the caller holds the lock.
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

// enforce computes all verdicts again and breaks the connections that a rule resets; the caller holds the lock.
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

// Go begins a goroutine that serves a connection, which Close waits for.
func (n *Network) Go(serve func()) { n.wg.Go(serve) }

// Close breaks every connection and waits for the goroutines that serve them. No connection may come any more.
func (n *Network) Close() {
	n.mu.Lock()
	for c := range n.conns {
		c.end()
	}
	n.mu.Unlock()
	n.wg.Wait()
}
