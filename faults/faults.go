// Package faults has the failures that the suite can inject, one in each file: killing servers, cutting links, setting
// clocks and so on. Inject returns the function that heals. A fault knows the topology and can stop workers at certain
// points. It knows nothing about locks.
package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"hammerlock/history"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

// All lists the faults: of nodes, links, messages, clocks and data, clients, agents, and programs.
var All = []Fault{
	killPrimary, killNode, restartEmpty, restartLate, pausePrimary, pauseMinority, failover, failoverLate, lostGrant,
	partition, partitionPrimary, cutHolder, reset, dropReply, delay, lateCommand, abandonCommand,
	cutConnection, refuseCommand,
	clockJump, clockRate, powerLoss, evict, flush, slowServer,
	cutSubscriptions, refuseWrites, noWrites, pauseWrites, scriptFlush, moveSlot, expireSession,
	stallWorker, crashWorker, stopProcess, killProcess,
	killAgent, pauseAgent, cutAgent,
	killProgram, pauseProgram,
}

// Fault is a kind of failure that can be injected into a run.
type Fault struct {
	Name  string
	Doc   string
	Needs Needs
	// Sources lists the loads that the fault can disturb; nil = workers, and programs whose servers it breaks.
	Sources []Source
	Redis   bool     // the fault sends Redis commands, so it needs Redis servers
	Brief   bool     // the fault is over at once, so there is nothing to heal
	Arg     argument // check of the argument, the text after the fault's name and a colon; nil = there is none
	// Passes means: if the fault begins at a program's command and no duration is given, it is healed at once.
	Passes bool
	// Message says what happens to the program's command at which the fault begins; nil = nothing.
	Message func(arg string) Message
	// Names returns the names in an argument, and the names that exist in the scene; nil = the argument has no names.
	Names func(arg string, s Scene) (named, known []string)
	// Unavailable says why the fault cannot be injected in a scene; empty or nil = it can.
	Unavailable func(Scene) string
	// UnavailableAttached says the same for servers that the suite did not start, with the fault's argument.
	UnavailableAttached func(arg string) string
	// Sends lists the names of the commands that disturb other users of attached servers, see topologies.Destructive.
	Sends []string
	// Effect says whom the fault affects and how. Checkers know nothing else about a fault.
	Effect func(Scene) history.Effect
	// lasts is the length of the fault, in leases and additional time, if the plan does not say when to heal it.
	lasts length
	// breaks says which assumption the fault violates, so that a correct lock may fail; nil = see Effect.
	breaks func(Scene) string
	// targets lists the arguments that name a target, for a menu; nil = the fault chooses its target itself.
	targets func(*topologies.Topology) []string
	Inject  injection
}

// Message says what happens to a single command of a program, or to its reply.
type Message struct {
	Refuse string        // the command is not executed; its reply is this error
	Delay  time.Duration // the reply arrives later by this
	Cut    bool          // the reply is dropped and the connection is closed
	Drop   bool          // the reply is dropped and the connection stays open, so the client waits
}

// Heal ends a fault. Afterwards the servers may need some time to become healthy.
type Heal func(context.Context) error

// Needs lists the options with which a topology must be started for a fault.
type Needs struct {
	Links     bool // a proxy in front of every node
	Clock     bool // a clock for every node that can be set
	Power     bool // an append-only file, and a simulated power supply
	Processes bool // workers in separate processes
}

// Or returns the needs of two faults together.
func (n Needs) Or(o Needs) Needs {
	return Needs{n.Links || o.Links, n.Clock || o.Clock, n.Power || o.Power, n.Processes || o.Processes}
}

// Scene describes the deployment, the lock and the load of a run, for the question which faults are possible there.
type Scene struct {
	Source       Source
	Topology     string
	Sites        int
	Nodes        int      // that hold data
	Names        []string // names of all nodes; nil = not known yet
	TTL          time.Duration
	Recovery     time.Duration // see topologies.Spec
	Can          topologies.Can
	Keeps        bool // servers keep acknowledged writes when they are killed, so held locks survive
	Session      bool // the server releases a lock when its client's connection or session ends
	Claims       history.Claims
	Waits        bool // Acquire waits in the library: no worker is refused before its patience ends
	Outlives     bool // a lock stays held when its worker ends, until the worker's process ends
	Program      bool // the lock runs in a program of its own (a driver)
	Clocked      bool // the wall clock of the lock's program can be set
	Shared       bool // all workers of a process share one lock object
	Processes    int
	Agents       int           // number of other machines with workers; 0 = all workers are on this machine
	AllowLost    bool          // the run goes on if an agent is lost
	Silence      time.Duration // an agent is considered lost after this time without a message
	Programs     int           // number of programs under test that the suite has started
	HeedDeadline bool          // a holder whose deadline has passed does not store
}

// redundant tells whether there are replicas that can replace a primary.
func (s Scene) redundant() bool { return s.Sites == 1 && s.Nodes > 1 }

// quorum is the number of sites that make a majority.
func (s Scene) quorum() int { return s.Sites/2 + 1 }

// Target is the running deployment that a fault is injected into.
type Target struct {
	Scene    Scene
	Topology *topologies.Topology
	Workers  Workers
	Arg      string // the argument: the text after the fault's name and a colon
	Rand     *rand.Rand
	TTL      time.Duration
	Keys     int
	LockKey  func(key int32) string
	Caught   *Caught // the worker that has reached the point at which the fault begins; nil if it begins at a time
	Over     func()  // may be called by the fault when it has had its effect, so that it is healed early
}

// Workers lets faults stop and find workers.
type Workers interface {
	// Catch stops the next worker that reaches a point of its visit with the given key, or any key if it is negative.
	Catch(ctx context.Context, point string, key int32) (*Caught, error)
	// Process returns a worker's process; an error if that is the suite's own.
	Process(worker int32) (Process, error)
	// Agent returns the agent that a worker runs on; an error if it runs on the suite's machine.
	Agent(worker int32) (Agent, error)
}

// Caught is a worker that was stopped at a point of its visit. It waits until it is released or killed.
type Caught struct {
	Worker, Key int32
	At          string // the point
	Go, Die     func()
}

// where describes the point at which the worker was stopped.
func (c *Caught) where() string {
	return map[string]string{Refused: "when it had just been refused",
		Granted: "when it had just been granted the lock",
		Loaded:  "between load and store", Between: "between two commands of its lock"}[c.At]
}

// Process is a separate process with workers.
type Process interface {
	Stop() error
	Continue() error
	Kill() error
	Source() int // Source is the number of its clients, for links.ClientParty.
}

// Find returns the fault with that name.
func Find(name string) (Fault, bool) {
	for _, f := range All {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}

// catchTimeout is how long a fault waits for a worker to reach a point.
const catchTimeout = 10 * time.Second

// ErrNobody means that no worker reached the point in time.
var ErrNobody = errors.New("no worker came by")

// injection injects a fault. It returns a description and the Heal, which is nil if there is nothing to heal.
type injection = func(context.Context, *Target) (what string, heal Heal, err error)

// holder returns a worker that holds a lock: the one at which the fault was triggered, or the next one that reaches the
// point.
func (t *Target) holder(ctx context.Context, point string) (*Caught, error) {
	if t.Caught != nil {
		return t.Caught, nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	return t.Workers.Catch(ctx, point, -1)
}

// holding makes an injection that stops a worker at a point, calls inject, and then lets the worker go on.
func holding(point string, inject func(context.Context, *Target, *Caught) (string, Heal, error)) injection {
	return func(ctx context.Context, t *Target) (string, Heal, error) {
		caught, err := t.holder(ctx, point)
		if err != nil {
			return "", nil, err
		}
		defer caught.Go()
		return inject(ctx, t, caught)
	}
}

// ofPrimary makes an injection into the node that serves a page's lock at that moment.
func ofPrimary(inject func(context.Context, *Target, *topologies.Node) (string, Heal, error)) injection {
	return func(ctx context.Context, t *Target) (string, Heal, error) {
		_, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		return inject(ctx, t, primary)
	}
}

// link applies a rule to the proxies until the fault is healed.
func (t *Target) link(r links.Rule, what string) (string, Heal, error) {
	return onLinks(t.Topology.Network(), r, what)
}

func onLinks(n *links.Network, r links.Rule, what string) (string, Heal, error) {
	undo, err := n.Apply(r)
	if err != nil {
		return "", nil, err
	}
	return what, func(ctx context.Context) error {
		undo()
		if r.Effect == links.Delay { // when the rule ends, the delayed messages must still arrive
			sleep(ctx, r.Latency+r.Jitter)
		}
		return nil
	}, nil
}

// primary returns the node that serves a page's lock at this moment. If there are several sites, it chooses one.
func (t *Target) primary(ctx context.Context) (site *topologies.Site, primary *topologies.Node, key int32, err error) {
	site = t.Topology.Sites[t.Rand.IntN(len(t.Topology.Sites))]
	if t.Caught != nil {
		key = t.Caught.Key
	} else {
		key = int32(t.Rand.IntN(t.Keys))
	}
	primary, err = site.Primary(ctx, t.LockKey(key))
	if err == nil && primary.State() != topologies.Up {
		err = fmt.Errorf("the primary %s is %s already", primary.Name, primary.State())
	}
	return site, primary, key, err
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// actTimeout limits the time of one action of a fault on a server.
const actTimeout = 20 * time.Second

// act performs an action that the end of the run must not interrupt half-way.
func act(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	return do(ctx)
}

// poll calls look every few milliseconds until it returns true. It returns false if ctx ended first.
func poll(ctx context.Context, look func() bool) bool {
	for !look() {
		if !sleep(ctx, 2*time.Millisecond) {
			return false
		}
	}
	return true
}

// restart returns the Heal of a node that was killed.
func restart(n *topologies.Node) Heal {
	return func(ctx context.Context) error {
		if n.State() != topologies.Down {
			return nil
		}
		return n.Start(ctx)
	}
}

// resume returns the Heal of a node that was paused.
func resume(n *topologies.Node) Heal {
	return func(context.Context) error { return n.Resume() }
}

// The assumptions of locks that faults violate.
const (
	losesWrites = "replication is asynchronous: a failover can lose an acknowledged grant"
	losesData   = "the server keeps its keys for as long as the lease"
	lyingClock  = "the server's clock goes as fast as the others'"
	losesHold   = "the connection of a hold lasts as long as the hold"
	slowHolder  = "the holder is done before its lease ends"
)

// Breaks says which assumption the fault violates in a scene; empty if a correct lock must survive it.
func (f Fault) Breaks(s Scene) string {
	if f.breaks != nil {
		return f.breaks(s)
	}
	e := f.Effect(s)
	if e.Spares {
		return ""
	}
	if s.Session && e.Loses == history.LosesKeys {
		return losesHold
	}
	return map[history.Loss]string{history.LosesWrites: losesWrites, history.LosesKeys: losesData,
		history.LosesTime: lyingClock}[e.Loses]
}

// always makes an Effect function that ignores the scene.
func always(e history.Effect) func(Scene) history.Effect {
	return func(Scene) history.Effect { return e }
}

func hits(parties ...history.Party) history.Effect { return history.Effect{Hits: parties} }

// hang is the effect of one server that does not answer for a short time, so that no replica replaces it. If sites are
// independent, the other sites are not affected.
func hang(s Scene) history.Effect {
	return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: s.Sites > 2}
}

// outage is the effect of one server that does not answer for so long that a replica, if there is one, replaces it.
func outage(s Scene) history.Effect {
	e := hang(s)
	if s.redundant() && !s.Keeps {
		e.Loses = history.LosesWrites
	}
	return e
}

// death is the effect of a server that loses its keys, whether it restarts soon or late.
func death(s Scene) history.Effect {
	e := outage(s)
	if !s.redundant() && !s.Keeps {
		// the site has lost its keys, so a lock that was held on a bare majority of sites is lost
		e.Loses, e.Spares = history.LosesKeys, false
	}
	return e
}

// keysLost is the effect of a server that loses its keys.
func keysLost(blocks bool) func(Scene) history.Effect {
	return always(history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: blocks})
}

// cut is the effect of network links that deliver nothing.
func cut(s Scene) history.Effect {
	e := outage(s)
	e.Hits, e.Spares = []history.Party{history.Links}, false // one client may be cut off from all sites
	return e
}

// ownServers is the UnavailableAttached of faults that act on the server's process.
func ownServers(string) string {
	return "needs servers of the suite's own, and those of --addr run already"
}

// ownMemory is the UnavailableAttached of faults that fill a server's memory.
func ownMemory(string) string {
	return "uses up the memory of the server, which belongs to others"
}

// When makes a function that returns the reason in scenes for which the condition holds, else an empty text.
func When(holds func(Scene) bool, reason string) func(Scene) string {
	return func(s Scene) string {
		if holds(s) {
			return reason
		}
		return ""
	}
}

var (
	needsReplicas = When(func(s Scene) bool { return !s.redundant() },
		"needs replicas: topology replica, sentinel or cluster")
	// After a manual failover, only the suite's own clients know the new primary.
	needsHeirs = func(s Scene) string {
		if s.Program && !s.Can.Find && s.redundant() {
			return "a program is not told which replica an operator has promoted: topology sentinel or cluster"
		}
		return needsReplicas(s)
	}
	needsQuorum = When(func(s Scene) bool { return s.Sites < 3 }, "needs independent sites: topology redlock")
	// In front of attached servers, proxies carry only the traffic of clients.
	needsNodes = When(func(s Scene) bool { return s.Nodes < 2 && s.Can.Own }, "needs more than one node")
)
