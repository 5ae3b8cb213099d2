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
	Sites int // independent places a lock can live
	Nodes int // that hold data
	// Copies is how many replicas each primary has.
	Copies int
	// Recovery is how long clients may need to be served when the deployment is healthy again, or one server has taken
	// the place of another: they reconnect, and ask who the primary is. About twice what was seen.
	Recovery time.Duration

	engine     *Engine // nil = Redis
	embeddable bool
	byHand     bool                                   // only an operator promotes a replica
	locks      bool                                   // by itself
	attached   *Attachment                            // where it is up already, if others run it
	shape      func(*Topology)                        // adds nodes and sites
	join       func(context.Context, *Topology) error // makes one deployment of nodes that are up; may be nil
	healthy    func(context.Context, *Topology) error // nil, or what is missing
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
	Flat    bool // one loopback address with a port a node, as where 127.0.0.2 cannot be bound
	Clock   bool // let SetClock set the nodes' clocks; Linux with a C compiler
	Durable Durability
	Power   bool // let PowerLoss cut the power of nodes that are durable; Linux with a C compiler
	// MinReplicas is how many replicas must have confirmed that they follow, a second ago at most, for a primary to
	// take writes: min-replicas-to-write, with a min-replicas-max-lag of 1.
	MinReplicas int
	// Database is the one that clients are sent to, unless the topology is a cluster, which has no other than 0.
	Database int
	// User is who clients log in as, with a password of its own; empty = the default user, whose password is another.
	User string
	Tell func(doing string) // is told what a start is doing, by any goroutine; nil = not wanted
	// Through, if it is not nil, carries the connections of clients to nodes that hold data, in the place of links: it
	// dials the node's Back, and returns when the connection is over. It needs Links.
	Through func(n *Node, client net.Conn)
}

// Durability is how often nodes sync their log of writes to the disk; the zero value is no log at all.
type Durability string

// The durabilities, as appendfsync knows them.
const (
	SyncAlways      Durability = "always"
	SyncEverySecond Durability = "everysec"
	SyncNever       Durability = "no" // by the operating system, some day
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
	programs []*Program        // that a service under test is made of; they are not asked what they are
	Settings map[string]string // every setting that shapes its behaviour, for the run record

	engine   *Engine
	mu       sync.Mutex // guards Settings while nodes start
	dir      string
	password string
	block    *block
	network  *links.Network
	shims    []string // libraries that are loaded into every server
	spawner  *Spawner
	reaper   *reaper

	// For a deployment that is not the suite's own.
	prefix  string                  // of all keys
	keepers []redis.UniversalClient // by site, past all links
	clean   func() error            // removes all keys
	hidden  map[string]string       // what the servers refused to tell
	// Evicting are the nodes that may evict keys, with the settings that let them, in words.
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

// NodeNames are the names of the nodes, sentinels included. Those of a deployment of others are known once it is up.
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

// serve is the engine of the topology's nodes. It completes the options.
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

// claim takes what a deployment owns besides its nodes: addresses, a directory, a reaper.
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
	if err := os.Mkdir(t.dir, 0o700); err != nil { // not before: the suite may be killed in between
		return fmt.Errorf("make a directory for the nodes: %w", err)
	}
	if err := t.buildShims(ctx); err != nil {
		return err
	}
	t.spawner = OpenSpawner()
	return nil
}

// nameDir names a directory that does not exist, and its name is good wherever a process stands: TMPDIR may be
// relative.
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
		return all.Unwrap()[0] // it is the same for every node
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

// tell says what the start is doing.
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

// add makes a node; it gets the next address of the block.
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

// each runs f for all nodes at once and joins the errors.
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

// poll calls f until it returns nil or ctx is done. It asks less often what takes long: those who are asked have to
// work for the answer, on the cores that they need to become ready. It adds a twentieth to the time at most.
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
