// Package topologies starts real Redis deployments as child processes on loopback and ends them again, whatever happens
// to the suite. Up returns when a deployment is ready, not when it is started. It knows no locks and judges nothing.
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

// Spec describes a topology that can be brought up.
type Spec struct {
	Name  string
	Doc   string
	Sites int // places where a lock can live independently
	Nodes int // that hold data
	// Copies is how many replicas each primary has.
	Copies int
	// Recovery is how long clients may need until they are served again, once the deployment is healthy or another
	// server has taken over: they reconnect and ask for the primary. It is about twice the longest time that was seen.
	Recovery time.Duration

	engine     *Engine // nil = Redis
	embeddable bool
	byHand     bool                                   // only an operator promotes a replica
	locks      bool                                   // by itself
	attached   *Attachment                            // the running deployment, if others run it
	shape      func(*Topology)                        // adds nodes and sites
	join       func(context.Context, *Topology) error // joins running nodes to one deployment; may be nil
	healthy    func(context.Context, *Topology) error // returns nil if the deployment works, or what is missing
}

// Embeddable tells whether the in-process stand-in can serve the topology.
func (s Spec) Embeddable() bool { return s.embeddable }

// Find returns the spec with that name.
func Find(name string) (Spec, bool) {
	for _, s := range All {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}

// Names lists the topologies.
func Names() []string {
	var names []string
	for _, s := range All {
		names = append(names, s.Name)
	}
	return names
}

// Options say how to bring a topology up.
type Options struct {
	Server  Server
	Profile Profile
	Links   bool // put a link in front of every node, so that its traffic can be cut and delayed
	Flat    bool // use one loopback address with a port for each node, for machines on which 127.0.0.2 cannot be bound
	Clock   bool // let SetClock set the nodes' clocks; Linux with a C compiler
	Durable Durability
	Power   bool // let PowerLoss cut the power of nodes that are durable; Linux with a C compiler
	// MinReplicas sets min-replicas-to-write, with a min-replicas-max-lag of 1: a primary takes writes only if so many
	// replicas have confirmed within the last second that they follow.
	MinReplicas int
	// Database is the clients' database. A cluster has database 0 only.
	Database int
	// User is the clients' user, with its own password; empty = the default user, who has another password.
	User string
	Tell func(doing string) // receives progress of a start, from any goroutine; nil = no listener
	// Through, if it is not nil, carries the connections of clients to nodes that hold data, in place of links: it
	// dials the node's Back, and returns when the connection is over. It needs Links.
	Through func(n *Node, client net.Conn)
}

// Durability says how often nodes sync their log of writes to the disk; the zero value means no log.
type Durability string

// The durabilities are the values of appendfsync.
const (
	SyncAlways      Durability = "always"
	SyncEverySecond Durability = "everysec"
	SyncNever       Durability = "no" // the operating system decides when
)

// durabilities lists the durabilities.
var durabilities = []Durability{SyncAlways, SyncEverySecond, SyncNever}

// Profile chooses how soon a deployment notices that a node has failed.
type Profile string

// The profiles.
const (
	Fast  Profile = "fast"  // timers for tests: failovers take about a second
	Stock Profile = "stock" // the servers' own defaults: failovers take half a minute
)

// Profiles lists the profiles.
var Profiles = []Profile{Fast, Stock}

// Topology is a deployment that is up.
type Topology struct {
	Spec     Spec
	Options  Options
	Nodes    []*Node
	Sites    []*Site
	starting sync.Mutex        // guards programs
	programs []*Program        // the programs of a service under test
	Settings map[string]string // the settings that shape the deployment's behaviour, for the run record

	engine   *Engine
	mu       sync.Mutex // guards Settings while nodes start
	dir      string
	password string
	block    *block
	network  *links.Network
	shims    []string // libraries loaded into every server
	spawner  *Spawner
	reaper   *reaper

	// For a deployment that others run.
	prefix  string                  // of all keys
	keepers []redis.UniversalClient // one client a site that bypasses all links
	clean   func() error            // removes all keys
	hidden  map[string]string       // commands that the servers refused, with their errors
	// Evicting lists the nodes that may evict keys, with the settings that allow it, in words.
	Evicting []string
}

const (
	startTimeout = 20 * time.Second
	joinTimeout  = 60 * time.Second
	pollEvery    = 5 * time.Millisecond
)

// Up starts the topology and returns when it is ready. If that fails, it ends everything that it started, and the error
// says which node lacks what.
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

// NodeNames lists the nodes' names, sentinels included. The names of a deployment of others are known once it is up.
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

// claim takes addresses, a directory and a reaper for the deployment.
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
	if err := os.Mkdir(t.dir, 0o700); err != nil { // the reaper comes first: the suite may be killed in between
		return fmt.Errorf("make a directory for the nodes: %w", err)
	}
	if err := t.buildShims(ctx); err != nil {
		return err
	}
	t.spawner = OpenSpawner()
	return nil
}

// nameDir returns the absolute path of a directory that does not exist yet: TMPDIR may be relative.
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
		return all.Unwrap()[0] // all nodes have the same error
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

// tell reports the progress of the start.
func (t *Topology) tell(format string, args ...any) {
	if t.Options.Tell != nil {
		t.Options.Tell(fmt.Sprintf(format, args...))
	}
}

// healthy returns nil if every node has its role and its links, and what is missing otherwise.
func (t *Topology) healthy(ctx context.Context) error { return t.Spec.healthy(ctx, t) }

// AwaitHealthy polls until the topology is healthy or ctx is done; its error says what was missing last.
func (t *Topology) AwaitHealthy(ctx context.Context) error {
	return poll(ctx, pollEvery, func() error { return t.healthy(ctx) })
}

// Dir is a directory that is removed when the topology is closed, or when the suite is killed. It is empty for the
// embedded server, which has none.
func (t *Topology) Dir() string { return t.dir }

// Close ends every process and removes everything that the topology made. It is safe to call twice.
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

// add makes a node, which gets the next address of the block.
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

// poll calls f until it returns nil or ctx is done. It asks less often if an answer takes long, because the server that
// is asked needs the cores to become ready. This adds a twentieth to the time at most.
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
