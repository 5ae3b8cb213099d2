// Package topologies starts real Redis deployments as child processes on loopback addresses, and removes them even if
// the suite is killed. Up returns when a deployment is ready for clients. The package knows nothing about locks.
package topologies

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/topologies/links"
)

// All lists the topologies, the simplest first.
var All = []Spec{single, replica, sentinel, cluster, redlock}

// Spec describes a kind of deployment.
type Spec struct {
	Name  string
	Doc   string
	Sites int // number of independent places for a lock
	Nodes int // number of nodes that hold data
	// Copies is the number of replicas of each primary.
	Copies int
	// Recovery is the time that clients need to reconnect and find the primary, after the deployment has become
	// healthy or another server has taken over. It is about twice the longest measured time.
	Recovery time.Duration

	engine     *Engine // nil = Redis
	embeddable bool
	byHand     bool                                   // only an operator makes the servers fail over
	locks      bool                                   // the service under test does its own locking
	attached   *Attachment                            // the running deployment; nil = the suite starts the servers
	shape      func(*Topology)                        // adds the nodes and sites
	join       func(context.Context, *Topology) error // connects the running nodes to each other; may be nil
	// returns nil if the deployment works, else an error that says what is missing
	healthy func(context.Context, *Topology) error
}

func (s Spec) Embeddable() bool { return s.embeddable }

func Find(name string) (Spec, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

func Names() []string {
	var names []string
	for _, s := range All {
		names = append(names, s.Name)
	}
	return names
}

type Options struct {
	Server  Server
	Profile Profile
	Links   bool // put a proxy in front of every node, so that its traffic can be cut and delayed
	Flat    bool // use one address with a port for each node, on machines that can bind 127.0.0.1 only
	Clock   bool // allow SetClock; needs Linux and a C compiler
	Durable Durability
	Power   bool // allow PowerLoss; needs Linux and a C compiler
	// MinReplicas sets min-replicas-to-write, with min-replicas-max-lag 1: a primary accepts writes only if this many
	// replicas have acknowledged within the last second.
	MinReplicas int
	// Database is the number of the clients' database. A cluster has database 0 only.
	Database int
	// User is the user name of clients, with its own password; empty = the default user.
	User string
	Tell func(doing string) // is called with the progress of the start, from any goroutine; may be nil
	// Through replaces the proxy for connections of clients to data nodes; nil = keep the proxy. It dials n.Back()
	// itself and returns when the connection has ended. It needs Links.
	Through func(n *Node, client net.Conn)
}

// Durability is how often nodes sync their append-only file to the disk; empty = they have no such file.
type Durability string

// The durabilities are the values of the setting appendfsync.
const (
	SyncAlways      Durability = "always"
	SyncEverySecond Durability = "everysec"
	SyncNever       Durability = "no" // the operating system decides when
)

var durabilities = []Durability{SyncAlways, SyncEverySecond, SyncNever}

// Profile says how soon a deployment notices that a node has failed.
type Profile string

// The profiles.
const (
	Fast  Profile = "fast"  // timers for tests: a failover takes about a second
	Stock Profile = "stock" // the servers' default timers: a failover takes half a minute
)

// Profiles lists the profiles.
var Profiles = []Profile{Fast, Stock}

type Topology struct {
	Spec     Spec
	Options  Options
	Nodes    []*Node
	Sites    []*Site
	starting sync.Mutex        // guards programs
	programs []*Program        // the programs of a service under test
	Settings map[string]string // settings that affect the deployment's behaviour, for the run record

	engine   *Engine
	mu       sync.Mutex // guards Settings while nodes start
	dir      string
	password string
	block    *block
	network  *links.Network
	shims    []string // libraries that are preloaded into every server
	spawner  *Spawner
	reaper   *reaper

	// The following fields are for attached servers only.
	prefix  string                  // prefix of all keys of this run
	keepers []redis.UniversalClient // one client for each site, without a proxy
	clean   func() error            // deletes all keys of this run
	hidden  map[string]string       // commands that the servers refused -> their errors
	// Evicting lists the nodes that may evict keys, each with the setting that allows it.
	Evicting []string
}

const (
	startTimeout = 20 * time.Second
	joinTimeout  = 60 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// Up starts the topology and returns when it is ready. If that fails, it ends everything that it has started, and its
// error says which node is not ready and why.
func (s Spec) Up(ctx context.Context, o Options) (t *Topology, err error) {
	o.Profile = cmp.Or(o.Profile, Fast)
	engine, err := s.serve(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", s.Name, err)
	}
	t = &Topology{Spec: s, Options: o, engine: engine, password: rand.Text(), Settings: map[string]string{
		"server": o.Server.String(), "profile": string(o.Profile)}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("topology %s: %w", s.Name, err), t.Close())
			t = nil
		}
	}()
	if t.foreign() {
		return t, t.attach(ctx)
	}
	if err := t.claim(ctx); err != nil {
		return t, err
	}
	s.shape(t)
	t.tell("%d nodes on %s", len(t.Nodes), o.Server)
	if err := t.start(ctx); err != nil {
		return t, err
	}
	return t, t.ready(ctx)
}

// NodeNames lists the names of the nodes, including sentinels. Those of an attached deployment are known after Up.
func (s Spec) NodeNames() []string {
	if s.attached != nil {
		return s.attached.names
	}
	t := &Topology{Spec: s}
	if s.shape != nil {
		s.shape(t)
	}
	return t.nodeNames()
}

func (t *Topology) nodeNames() (names []string) {
	for _, n := range t.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// serve returns the engine of the topology's nodes and completes the options.
func (s Spec) serve(ctx context.Context, o *Options) (e *Engine, err error) {
	switch {
	case o.Server.Embedded():
		return embeddedServers, s.embeds(o)
	case s.engine == nil:
		return redisServers, nil
	}
	o.Server, err = s.engine.Find(ctx)
	return s.engine, err
}

// claim reserves addresses, a directory and a reaper for the deployment.
func (t *Topology) claim(ctx context.Context) (err error) {
	if t.engine.inside != nil {
		return nil
	}
	if t.Options.Links || !t.foreign() {
		if t.block, err = claimBlock(t.Options.Flat); err != nil {
			return err
		}
	}
	if err := t.openNetwork(); err != nil {
		return err
	}
	if t.dir, err = nameDir(); err != nil {
		return fmt.Errorf("make a directory for the nodes: %w", err)
	}
	if t.reaper, err = startReaper(t.dir); err != nil {
		return err
	}
	if err := os.Mkdir(t.dir, 0o700); err != nil { // after the reaper, because the suite may be killed in between
		return fmt.Errorf("make a directory for the nodes: %w", err)
	}
	if err := t.buildShims(ctx); err != nil {
		return err
	}
	t.spawner = OpenSpawner()
	return nil
}

// nameDir returns the absolute path of a directory that does not exist yet. TMPDIR may be relative.
func nameDir() (string, error) {
	base, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(base, "*?[") {
		return "", fmt.Errorf("%q (TMPDIR): servers take * ? and [ in the name of their configuration for patterns",
			base)
	}
	return filepath.Join(base, tempPrefix+strings.ToLower(rand.Text()[:10])), nil
}

func (t *Topology) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.engine.within, joinTimeout))
	defer cancel()
	err := t.each(func(n *Node) error {
		err := n.Start(ctx)
		if err == nil {
			t.tell("%s is up: a %s at %s", n.Name, n.Role, n.Addr())
		}
		return err
	})
	if all, ok := err.(interface{ Unwrap() []error }); ok && errors.Is(err, errWrapped) {
		return all.Unwrap()[0] // all nodes failed with the same error
	}
	return err
}

func (t *Topology) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	if t.Spec.join != nil {
		t.tell("the nodes meet each other")
		if err := t.Spec.join(ctx, t); err != nil {
			return err
		}
	}
	told := ""
	return poll(ctx, pollEvery, func() error {
		err := t.healthy(ctx)
		if err != nil && err.Error() != told {
			told = err.Error()
			t.tell("not ready yet: %s", told)
		}
		return err
	})
}

func (t *Topology) tell(format string, args ...any) {
	if t.Options.Tell != nil {
		t.Options.Tell(fmt.Sprintf(format, args...))
	}
}

// healthy returns nil if every node has its role and its connections, else an error that says what is missing.
func (t *Topology) healthy(ctx context.Context) error { return t.Spec.healthy(ctx, t) }

// AwaitHealthy polls until the topology is healthy or ctx is done. Its error says what was missing last.
func (t *Topology) AwaitHealthy(ctx context.Context) error {
	return poll(ctx, pollEvery, func() error { return t.healthy(ctx) })
}

// Dir returns the directory of the deployment; empty for in-memory servers. It is removed when the topology is closed
// or the suite is killed.
func (t *Topology) Dir() string { return t.dir }

// Close ends every process and removes everything that the topology has made. It is safe to call twice.
func (t *Topology) Close() error {
	errs := []error{t.leave()}
	for _, p := range t.Programs() {
		errs = append(errs, p.close())
	}
	errs = append(errs, t.each((*Node).close))
	if t.network != nil {
		t.network.Close()
	}
	if t.spawner != nil {
		t.spawner.Close()
		t.spawner = nil
	}
	if t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
		t.dir = ""
	}
	if t.reaper != nil {
		errs = append(errs, t.reaper.Close())
		t.reaper = nil
	}
	if t.block != nil {
		errs = append(errs, t.block.release())
		t.block = nil
	}
	return errors.Join(errs...)
}

// add makes a node with the next address of the block.
func (t *Topology) add(name string, role Role, config func(*Node) []directive) *Node {
	n := &Node{Name: name, Role: role, config: config, topology: t}
	if t.block != nil {
		n.front, n.back = t.block.node(len(t.Nodes))
		if t.network == nil {
			n.back = n.front
		} else {
			ip, _ := splitAddr(n.front)
			t.network.Add(ip, links.Party(name))
		}
		n.dir = filepath.Join(t.dir, name)
	}
	t.Nodes = append(t.Nodes, n)
	return n
}

// each calls f for all nodes in parallel and joins the errors.
func (t *Topology) each(f func(*Node) error) error { return each(t.Nodes, f) }

func each(nodes []*Node, f func(*Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if err := f(n); err != nil {
				errs[i] = fmt.Errorf("node %s: %w", n.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// poll calls f until f returns nil or ctx ends. The pause between calls grows to 1/20 of the time since the start,
// because the servers need the processor to become ready.
func poll(ctx context.Context, every time.Duration, f func() error) error {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last error
	for {
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-timer.C:
		}
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		timer.Reset(max(every, time.Since(start)/20))
	}
}
