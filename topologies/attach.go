package topologies

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"hammerlock/topologies/links"
)

// Attachment describes running servers that the suite did not start, and what the suite may do with them. The suite
// touches no key outside Prefix, and sends a command that disturbs other users only if Allow names it.
type Attachment struct {
	Endpoints []Endpoint // addresses that the user gave: of the sentinels if there are any, else of the servers
	Data      Login      // login at the servers behind the sentinels
	Master    string     // the primary's name in the sentinels' configuration
	TLS       *TLS       `json:"-"`
	Map       map[string]string
	Prefix    string            // common prefix of the keys of all runs; each run appends random letters
	Allow     []string          // commands that the user allows, by their keys in Destructive
	Tell      func(line string) // is called with a line of text for each change that the suite makes; may be nil
	Removed   []string          // one text for each killed run whose keys this run has deleted

	tls   *tls.Config
	names []string // names of the nodes that the suite found
}

// Endpoint is one address that the user named.
type Endpoint struct {
	Addr  string
	Login Login
	DB    int
}

// Login is a user and a password. It is never printed nor encoded.
type Login struct{ user, password string }

func NewLogin(user, password string) Login { return Login{user, password} }

// Parts returns user and password, for lock drivers with their own connections.
func (l Login) Parts() (user, password string) { return l.user, l.password }

// Format implements fmt.Formatter. It prints a placeholder for every verb, so no log shows a password.
func (l Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(hidden)") }

// Of returns a copy of a Spec whose servers are the attached ones.
func (a *Attachment) Of(kind Spec) Spec {
	kind.attached, kind.embeddable, kind.join, kind.healthy = a, false, nil, writable
	kind.Nodes = 1
	if kind.Sites > 1 {
		kind.Sites, kind.Nodes = len(a.Endpoints), len(a.Endpoints)
	}
	return kind
}

// foreign tells whether the servers were attached, not started by the suite.
func (t *Topology) foreign() bool { return t.Spec.attached != nil }

const DefaultPrefix = "hammerlock:"

// Prefix returns the prefix of all keys of this run.
func (t *Topology) Prefix() string { return cmp.Or(t.prefix, DefaultPrefix) }

// errForeign is returned by operations on a server process that the suite did not start, such as Kill.
var errForeign = errors.New("the server is not one of the suite")

// attach finds the nodes of the running deployment and makes the sites. Then it deletes the keys of killed runs and
// registers this run.
func (t *Topology) attach(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	a := t.Spec.attached
	if a.TLS != nil {
		if a.tls, err = a.TLS.config(); err != nil {
			return err
		}
	}
	t.prefix = a.Prefix + strings.ToLower(rand.Text()[:10]) + ":"
	if err := t.claim(ctx); err != nil {
		return err
	}
	if err := t.find(ctx); err != nil {
		return err
	}
	a.names = t.nodeNames()
	t.readConfig(ctx)
	t.describe()
	if err := t.openLinks(ctx); err != nil {
		return err
	}
	err = t.enter(ctx)
	if len(a.Removed) > 0 {
		t.Settings["removed"] = strings.Join(a.Removed, "; ")
	}
	return err
}

// configured lists the server settings that affect the guarantees of a lock.
var configured = []string{"maxmemory-policy", "save", "appendonly", "appendfsync", "min-replicas-to-write",
	"cluster-node-timeout"}

// readConfig asks the first primary for its settings. Many cloud providers refuse CONFIG GET, which is no error.
func (t *Topology) readConfig(ctx context.Context) {
	i := slices.IndexFunc(t.Nodes, func(n *Node) bool { return n.Role == Primary })
	if i < 0 {
		return
	}
	for _, name := range configured {
		found, err := t.Nodes[i].control.ConfigGet(ctx, name).Result()
		if err != nil {
			t.hide("CONFIG GET", err)
			return
		}
		if value, ok := found[name]; ok {
			t.Settings[name] = value
		}
	}
}

// describe writes the servers' versions and roles to the settings of the run record.
func (t *Topology) describe() {
	a := t.Spec.attached
	var nodes []string
	for _, n := range t.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s %s (%s)", n.Name, n.front, n.Role))
	}
	t.Settings["attached"] = strings.Join(nodes, ", ")
	t.Settings["prefix"] = t.prefix
	t.Settings["server"] = cmp.Or(t.Options.Server.String(), "unknown: the servers do not tell their version")
	delete(t.Settings, "profile")
	if len(a.Allow) > 0 {
		t.Settings["allowed"] = strings.Join(slices.Sorted(slices.Values(a.Allow)), ",")
	}
	if a.TLS != nil {
		t.Settings["tls"] = "yes"
	}
	if len(a.Map) > 0 {
		var pairs []string
		for _, from := range slices.Sorted(maps.Keys(a.Map)) {
			pairs = append(pairs, from+"="+a.Map[from])
		}
		t.Settings["map"] = strings.Join(pairs, ",")
	}
	for what, why := range t.Hidden() {
		t.Settings["hidden "+what] = why
	}
}

// openLinks puts a proxy in front of each node if the plan has network faults. Clients connect to the proxies instead
// of the announced addresses.
func (t *Topology) openLinks(ctx context.Context) error {
	if t.network == nil {
		return nil
	}
	fronts := map[string]string{}
	for i, n := range t.Nodes {
		n.link, _ = t.block.node(i)
		fronts[n.front] = n.link
		ip, _ := splitAddr(n.link)
		t.network.Add(ip, links.Party(n.Name))
		n.gate = &gate{network: t.network, node: n}
		if err := n.gate.open(ctx); err != nil {
			return err
		}
	}
	for _, s := range t.Sites {
		s.access.Links, s.access.Sources = fronts, t.block.prefix
	}
	return nil
}

// writable returns nil if every site accepts a write.
func writable(ctx context.Context, t *Topology) error {
	for i, c := range t.keepers {
		if err := c.Set(ctx, t.prefix+"probe", "1", time.Second).Err(); err != nil {
			return fmt.Errorf("site %s takes no write: %w", t.Sites[i].Name, err)
		}
	}
	return nil
}

// leave ends the use of attached servers: it deletes the run's keys and closes the suite's connections. The servers go
// on running.
func (t *Topology) leave() (err error) {
	if !t.foreign() {
		return nil
	}
	for _, n := range t.Nodes {
		n.gate.close()
	}
	if t.network != nil {
		t.network.Close()
	}
	if t.clean != nil {
		err = t.clean()
		t.clean = nil
	}
	for _, c := range t.keepers {
		err = errors.Join(err, c.Close())
	}
	t.keepers = nil
	return err
}
