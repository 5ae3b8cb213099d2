package catalogue

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

// The tests named TestFinding prove the statements of docs/FINDINGS.md about released libraries. They use only the
// libraries and a real server. A failure means that a library has changed.

// people is a topology whose clients are set up as the libraries' documents show. With the option Links, the suite's
// proxies connect the clients to the servers.
type people struct {
	top     *topologies.Topology
	clients []redis.UniversalClient // plain go-redis clients, one for each site
}

// played repeats a test on the topology until the result is clear.
func (p *people) played(t *testing.T, play func(home *stage, key string)) {
	t.Helper()
	played(t, &bench{p.top, p.clients}, "k", play)
}

func newPeople(t *testing.T, topology string, o topologies.Options) *people {
	t.Helper()
	p := &people{top: testbed.Up(t, topology, o)}
	for _, s := range p.top.Sites {
		p.clients = append(p.clients, redis.NewClient(&redis.Options{Addr: s.Addrs()[0], Password: s.Password()}))
	}
	t.Cleanup(func() {
		for _, c := range p.clients {
			must(t, c.Close())
		}
	})
	return p
}

// apply activates a rule until heal is called or the test ends.
func (p *people) apply(t *testing.T, r links.Rule) (heal func()) {
	t.Helper()
	heal, err := p.top.Network().Apply(r)
	must(t, err)
	t.Cleanup(heal)
	return heal
}

// slow makes replies of all nodes, or of the given nodes, arrive later.
func (p *people) slow(by time.Duration, nodes ...links.Party) links.Rule {
	if nodes == nil {
		nodes = []links.Party{links.AllNodes}
	}
	return links.Rule{From: nodes, To: []links.Party{links.AllClients}, OneWay: true, Effect: links.Delay, Latency: by}
}

// loseReply lets the next command be executed and breaks its connection before the reply.
func (p *people) loseReply() links.Rule {
	return links.Rule{
		From: []links.Party{links.AllClients}, To: []links.Party{links.AllNodes},
		Effect: links.LoseReply, Count: 1,
	}
}

// pause stops a node until the test ends.
func (p *people) pause(t *testing.T, node int) {
	t.Helper()
	must(t, p.top.Nodes[node].Pause())
	t.Cleanup(func() { must(t, p.top.Nodes[node].Resume()) })
}

// left returns the rest of the key's TTL on a node; negative if the key does not exist.
func (p *people) left(t *testing.T, node int, key string) time.Duration {
	t.Helper()
	ms, err := p.top.Nodes[node].Do(t.Context(), "PTTL", key).Int64()
	must(t, err)
	return time.Duration(ms) * time.Millisecond
}

// strict makes a client that obeys deadlines while it waits for a reply; go-redis must be told to.
func (p *people) strict(t *testing.T, site int) redis.UniversalClient {
	t.Helper()
	s := p.top.Sites[site]
	c := redis.NewClient(&redis.Options{Addr: s.Addrs()[0], Password: s.Password(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

var commandCalls = regexp.MustCompile(`cmdstat_(\w+):calls=(\d+)`)

// calls returns how often the first node has executed each command.
func (p *people) calls(t *testing.T) map[string]int {
	t.Helper()
	text, err := p.top.Nodes[0].Do(t.Context(), "INFO", "commandstats").Text()
	must(t, err)
	n := map[string]int{}
	for _, found := range commandCalls.FindAllStringSubmatch(text, -1) {
		if n[found[1]], err = strconv.Atoi(found[2]); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
