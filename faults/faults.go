// Package faults has the failures that the suite can inject: it kills servers, cuts links, sets clocks and so on.
// Fault.Inject injects a failure and returns a function that heals it. A fault knows the topology and can stop
// workers at certain points. It knows nothing about locks.
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

// All lists the faults of nodes, links, messages, clocks and data, clients, agents, and programs, in this order.
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
	// Sources lists the loads that the fault can disturb; nil = workers, and programs whose servers it disturbs.
	Sources []Source
	Redis   bool     // the fault needs Redis servers, because it sends Redis commands
	Brief   bool     // the fault needs no heal, because it ends as soon as it is injected
	Arg     argument // checks the argument, the text after a colon; nil = the fault takes none
	// Passes means: if the fault has no duration and begins at a program's command, it is healed immediately.
	Passes bool
	// Message returns the change to the program's command at which the fault begins; nil = no change.
	Message func(arg string) Message
	// Names returns the names in an argument, and those that exist in the scene; nil = no names in an argument.
	Names func(arg string, s Scene) (named, known []string)
	Named string // what the names in the argument stand for; empty = nodes
	// Unavailable returns the reason why the fault cannot be injected in a scene; empty or nil = it can.
	Unavailable func(Scene) string
	// UnavailableAttached returns this reason for servers that the suite did not start; empty or nil = it can.
	UnavailableAttached func(arg string) string
	// Sends lists the destructive commands that the fault sends, as keys of topologies.Destructive.
	Sends []string
	// Effect returns who is affected and how. Checkers know nothing else about a fault.
	Effect func(Scene) history.Effect
	// lasts is the length of the fault if the plan does not say when to heal it.
	lasts length
	// breaks returns the assumption that the fault violates. A correct lock may fail if its assumption is violated.
	// If breaks is nil, Breaks derives the assumption from Effect.
	breaks func(Scene) string
	// targets lists the arguments that name a target, for a menu; nil = the fault itself chooses its target.
	targets func(*topologies.Topology) []string
	Inject  injection
}

// Message is what happens to one command of a program, or to its reply.
type Message struct {
	Refuse string        // the command is not executed; this is the error reply
	Delay  time.Duration // the reply arrives this much later
	Cut    bool          // the reply is dropped and the connection is closed
	Drop   bool          // the reply is dropped and the connection stays open, so the client waits
}

// Heal ends a fault. The servers may need time to become healthy afterwards.
type Heal func(context.Context) error

// Needs are the options with which a topology must be started for a fault.
type Needs struct {
	Links     bool // a proxy in front of every node
	Clock     bool // a settable clock for every node
	Power     bool // an append-only file, and a simulated power supply
	Processes bool // workers in separate processes
}

func (n Needs) Or(o Needs) Needs {
	return Needs{n.Links || o.Links, n.Clock || o.Clock, n.Power || o.Power, n.Processes || o.Processes}
}

// Scene describes the deployment, the lock and the load of a run. It decides which faults are possible.
type Scene struct {
	Source       Source
	Topology     string
	Sites        int
	Nodes        int      // number of nodes that hold data
	Names        []string // names of all nodes; nil = not known yet
	TTL          time.Duration
	Recovery     time.Duration // see topologies.Spec
	Can          topologies.Can
	Keeps        bool // a killed server keeps all acknowledged writes, so held locks survive
	Session      bool // the server releases a lock when its client's connection or session ends
	Claims       history.Claims
	Waits        bool // Acquire waits in the library, so no worker is refused before its patience ends
	Outlives     bool // a lock stays held when its worker dies, until the worker's process ends
	Program      bool // the lock runs in an external program (a driver)
	Clocked      bool // the wall clock of the lock's program can be set
	Shared       bool // all workers of a process share one lock object
	Processes    int
	Agents       int           // number of other machines with workers; 0 = all workers are on this machine
	AllowLost    bool          // the run goes on if an agent is lost
	Silence      time.Duration // an agent counts as lost after this time without a message
	Programs     int           // number of programs under test that the suite has started
	HeedDeadline bool          // a holder does not store after its deadline
}

// redundant tells whether a replica can replace a primary.
func (s Scene) redundant() bool { return s.Sites == 1 && s.Nodes > 1 }

// quorum returns the number of sites that make a majority.
func (s Scene) quorum() int { return s.Sites/2 + 1 }

// Target is the running deployment into which a fault is injected.
type Target struct {
	Scene    Scene
	Topology *topologies.Topology
	Workers  Workers
	Arg      string // argument of the fault
	Rand     *rand.Rand
	TTL      time.Duration
	Keys     int
	LockKey  func(key int32) string
	Caught   *Caught // the worker at whose visit the fault begins; nil if the fault begins at a planned time
	Over     func()  // a fault may call this when its effect is over, to be healed early
}

type Workers interface {
	// Catch stops the next worker that reaches a point of its visit with this key; a negative key means any key.
	Catch(ctx context.Context, point string, key int32) (*Caught, error)
	// Process returns the process of a worker. It returns an error if that is the suite's own process.
	Process(worker int32) (Process, error)
	// Agent returns the agent of a worker. It returns an error if the worker runs on the suite's machine.
	Agent(worker int32) (Agent, error)
}

// Caught is a worker that is stopped at a point of its visit, until Go or Die is called.
type Caught struct {
	Worker, Key int32
	At          string // name of the point
	Go, Die     func()
}

// where describes the point at which the worker is stopped.
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
	Source() int // number of its clients, for links.ClientParty
}

func Find(name string) (Fault, bool) {
	for _, f := range All {
		if f.Name == name {
			return f, true
		}
	}
	return Fault{}, false
}

// catchTimeout is the longest time for which a fault waits for a worker to reach a point.
const catchTimeout = 10 * time.Second

// ErrNobody means that no worker reached the point in time.
var ErrNobody = errors.New("no worker came by")

// injection injects a fault. It returns a description and the Heal; nil = nothing to heal.
type injection = func(context.Context, *Target) (what string, heal Heal, err error)

// holder returns a stopped worker that holds a lock: the worker at which the fault begins, or else the next worker that
// reaches the point.
func (t *Target) holder(ctx context.Context, point string) (*Caught, error) {
	if t.Caught != nil {
		return t.Caught, nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	return t.Workers.Catch(ctx, point, -1)
}

// holding makes an injection that stops a worker at a point, calls inject, and lets the worker go on.
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
		if r.Effect == links.Delay { // the delayed messages must still arrive
			sleep(ctx, r.Latency+r.Jitter)
		}
		return nil
	}, nil
}

// primary returns the node that now serves the lock of one page: the caught worker's page, or a random one. If
// there are several sites, it chooses one at random.
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

// actTimeout is the time limit for one action of a fault on a server.
const actTimeout = 20 * time.Second

// act performs an action that the end of the run must not interrupt.
func act(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	return do(ctx)
}

// poll calls the function look every 2 ms until look returns true. It returns false if ctx ended first.
func poll(ctx context.Context, look func() bool) bool {
	for !look() {
		if !sleep(ctx, 2*time.Millisecond) {
			return false
		}
	}
	return true
}

// restart returns the Heal for a killed node.
func restart(n *topologies.Node) Heal {
	return func(ctx context.Context) error {
		if n.State() != topologies.Down {
			return nil
		}
		return n.Start(ctx)
	}
}

// resume returns the Heal for a paused node.
func resume(n *topologies.Node) Heal {
	return func(context.Context) error { return n.Resume() }
}

// always makes an Effect function that ignores the scene.
func always(e history.Effect) func(Scene) history.Effect {
	return func(Scene) history.Effect { return e }
}

func hits(parties ...history.Party) history.Effect { return history.Effect{Hits: parties} }

// hang is the effect of one server that does not answer for so short a time that no replica replaces it. Other
// independent sites are not affected.
func hang(s Scene) history.Effect {
	return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: s.Sites > 2}
}

// outage is the effect of one server that does not answer for so long that a replica replaces it, if it has one.
func outage(s Scene) history.Effect {
	e := hang(s)
	if s.redundant() && !s.Keeps {
		e.Loses = history.LosesWrites
	}
	return e
}

// death is the effect of a killed server, which loses its keys.
func death(s Scene) history.Effect {
	e := outage(s)
	if !s.redundant() && !s.Keeps {
		// a lock that was held on a bare majority of sites is lost with the keys of this site
		e.Loses, e.Spares = history.LosesKeys, false
	}
	return e
}

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

// When makes a function that returns the reason in scenes for which the condition holds. In other scenes, the function
// returns an empty text.
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
	// Only the suite's own clients know the new primary after a manual failover.
	needsHeirs = func(s Scene) string {
		if s.Program && !s.Can.Find && s.redundant() {
			return "a program is not told which replica an operator has promoted: topology sentinel or cluster"
		}
		return needsReplicas(s)
	}
	needsQuorum = When(func(s Scene) bool { return s.Sites < 3 }, "needs independent sites: topology redlock")
	// Attached servers have proxies for the traffic of clients only.
	needsNodes = When(func(s Scene) bool { return s.Nodes < 2 && s.Can.Own }, "needs more than one node")
)
