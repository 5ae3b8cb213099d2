// Package faults breaks things: one file a fault. Inject returns the function that heals. A fault knows the topology
// and may catch workers, but it knows no lock and judges nothing.
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

// All lists the faults: first of nodes, then of links and messages, of clocks and data, of clients, of agents, and of
// programs.
var All = []Fault{
	killPrimary, killNode, restartEmpty, restartLate, pausePrimary, pauseMinority, failover, failoverLate, lostGrant,
	partition, partitionPrimary, cutHolder, reset, dropReply, delay, lateCommand, abandonCommand,
	cutConnection, refuseCommand,
	clockJump, clockRate, powerLoss, evict, flush, slowServer,
	cutSubscriptions, refuseWrites, noWrites, scriptFlush, moveSlot, expireSession,
	stallWorker, crashWorker, stopProcess, killProcess,
	killAgent, pauseAgent, cutAgent,
	killProgram, pauseProgram,
}

// Fault is a way to break a run.
type Fault struct {
	Name  string
	Doc   string
	Needs Needs
	// Sources lists where the fault's operations may come from; nil = workers, and programs whose servers it breaks.
	Sources []Source
	Redis   bool     // the fault needs commands of Redis
	Brief   bool     // the fault ends at once: a plan's heal does not apply to it
	Arg     argument // the argument after the fault's name and a colon; nil = none
	// Passes means that the fault is healed at once if it begins at a program's command and no time is given.
	Passes bool
	// Message says what happens to the program's command, or its reply, at which the fault begins; nil = the fault
	// breaks no single message.
	Message func(arg string) Message
	// Names returns the names in an argument and all names of that kind in the scene; nil = the argument names nothing.
	Names func(arg string, s Scene) (named, known []string)
	// Unavailable says why the fault is unavailable in a scene; empty or nil = it is available.
	Unavailable func(Scene) string
	// UnavailableAttached is Unavailable for servers that others run, and for the fault's argument.
	UnavailableAttached func(arg string) string
	// Sends names the commands that harm other users of the servers, as topologies.Destructive does.
	Sends []string
	// Effect says which parties the fault hits in a scene and what it can do there. Judges know nothing else of it.
	Effect func(Scene) history.Effect
	// lasts is the fault's length, in leases and in further time, if a plan does not heal it.
	lasts length
	// breaks says which assumption of a right lock the fault breaks in a scene; nil = it follows from Effect.
	breaks func(Scene) string
	// targets lists the arguments that name the fault's possible targets; nil = the fault chooses its target itself.
	targets func(*topologies.Topology) []string
	Inject  injection
}

// Message says what happens to a command of a program, or to its reply.
type Message struct {
	Refuse string        // the command is not executed, and the reply is this error
	Delay  time.Duration // the reply is delayed
	Cut    bool          // the reply is dropped, and the connection breaks
	Drop   bool          // the reply is dropped, and the connection stays: the client waits
}

// Heal undoes a fault. The servers may need a while until they are healthy.
type Heal func(context.Context) error

// Needs lists what a topology must be started with.
type Needs struct {
	Links     bool // a link in front of every node
	Clock     bool // every node has its own clock
	Power     bool // a log on disk, and power that can fail
	Processes bool // workers in processes of their own
}

// Or joins two needs.
func (n Needs) Or(o Needs) Needs {
	return Needs{n.Links || o.Links, n.Clock || o.Clock, n.Power || o.Power, n.Processes || o.Processes}
}

// Scene describes where a fault is to happen.
type Scene struct {
	Source       Source
	Topology     string
	Sites        int
	Nodes        int      // that hold data
	Names        []string // the names of all nodes; nil = not known
	TTL          time.Duration
	Recovery     time.Duration // see topologies.Spec
	Can          topologies.Can
	Keeps        bool // the servers keep acknowledged writes, so a hold outlives a server's death
	Session      bool // a hold ends with its connection
	Claims       history.Claims
	Waits        bool // a try of the lock waits itself: no worker is refused before its patience is over
	Outlives     bool // a worker's hold outlives the worker, but not its process
	Program      bool // the lock lives in a program of its own
	Clocked      bool // the lock's program has a wall clock that can be set
	Shared       bool // all workers of a process share one object of the lock
	Processes    int
	Agents       int           // machines with workers; 0 = the suite's own alone
	AllowLost    bool          // an agent may be lost without ending the run
	Silence      time.Duration // an agent is lost after so long without a message
	Programs     int           // programs of the visited service, or behind a wire, that the suite has started
	HeedDeadline bool          // a late holder does not touch what the lock guards
}

// redundant tells whether replicas can take a primary's place.
func (s Scene) redundant() bool { return s.Sites == 1 && s.Nodes > 1 }

// quorum is how many sites make a majority.
func (s Scene) quorum() int { return s.Sites/2 + 1 }

// Target is what a fault may break.
type Target struct {
	Scene    Scene
	Topology *topologies.Topology
	Workers  Workers
	Arg      string // the text after the fault's name and a colon
	Rand     *rand.Rand
	TTL      time.Duration
	Keys     int
	LockKey  func(key int32) string
	Caught   *Caught // the worker at which the fault was triggered, if there is one
	Over     func()  // the fault calls it when it has had its effect, so that it is healed early
}

// Workers gives faults access to workers.
type Workers interface {
	// Catch stops the next worker that reaches a point with the key (or with any key, if it is negative).
	Catch(ctx context.Context, point string, key int32) (*Caught, error)
	// Process returns the process that a worker lives in; an error if it is the suite's own.
	Process(worker int32) (Process, error)
	// Agent returns the machine that a worker lives on; an error if it is the suite's own.
	Agent(worker int32) (Agent, error)
}

// Caught is a worker that was stopped at a point, and waits there until it is released or killed.
type Caught struct {
	Worker, Key int32
	At          string // the point
	Go, Die     func()
}

// where names the worker's point.
func (c *Caught) where() string {
	return map[string]string{Refused: "when it had just been refused",
		Granted: "when it had just been granted the lock",
		Loaded:  "between load and store", Between: "between two commands of its lock"}[c.At]
}

// Process is a worker process.
type Process interface {
	Stop() error
	Continue() error
	Kill() error
	Source() int // the clients' number, as links.ClientParty takes it
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

// catchTimeout is how long a fault waits for a worker.
const catchTimeout = 10 * time.Second

// ErrNobody means that no worker came in time to the point at which a fault waited.
var ErrNobody = errors.New("no worker came by")

// injection carries out a fault. It returns a description and the function that undoes it; nil if nothing is left to
// undo.
type injection = func(context.Context, *Target) (what string, heal Heal, err error)

// holder returns a worker that holds a lock: the one at which the fault was triggered, or the next that comes.
func (t *Target) holder(ctx context.Context, point string) (*Caught, error) {
	if t.Caught != nil {
		return t.Caught, nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	return t.Workers.Catch(ctx, point, -1)
}

// holding makes an injection that holds a worker at a point while it breaks something.
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

// ofPrimary makes an injection that hits the node that serves a page's lock now.
func ofPrimary(inject func(context.Context, *Target, *topologies.Node) (string, Heal, error)) injection {
	return func(ctx context.Context, t *Target) (string, Heal, error) {
		_, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		return inject(ctx, t, primary)
	}
}

// link applies a rule to the links until the fault is healed.
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
		if r.Effect == links.Delay { // a delay is over when the messages under way have arrived
			sleep(ctx, r.Latency+r.Jitter)
		}
		return nil
	}, nil
}

// primary returns the node that serves a page's lock now, on its only site or on any site.
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

// sleep waits; it is false when ctx was done first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// actTimeout bounds what a fault does to a server.
const actTimeout = 20 * time.Second

// act shields an action from the end of the run: it must not be left half done.
func act(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	return do(ctx)
}

// poll calls look every few milliseconds until it returns true; it returns false if ctx was done first.
func poll(ctx context.Context, look func() bool) bool {
	for !look() {
		if !sleep(ctx, 2*time.Millisecond) {
			return false
		}
	}
	return true
}

// restart returns the heal of a killed node.
func restart(n *topologies.Node) Heal {
	return func(ctx context.Context) error {
		if n.State() != topologies.Down {
			return nil
		}
		return n.Start(ctx)
	}
}

// resume returns the heal of a paused node.
func resume(n *topologies.Node) Heal {
	return func(context.Context) error { return n.Resume() }
}

// The assumptions that faults break.
const (
	losesWrites = "replication is asynchronous: a failover can lose an acknowledged grant"
	losesData   = "the server keeps its keys for as long as the lease"
	lyingClock  = "the server's clock goes as fast as the others'"
	losesHold   = "the connection of a hold lasts as long as the hold"
	slowHolder  = "the holder is done before its lease ends"
)

// Breaks says which assumption of a right lock the fault breaks in a scene; empty if a right lock must survive the
// fault.
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

// always returns an effect that is the same in every scene.
func always(e history.Effect) func(Scene) history.Effect {
	return func(Scene) history.Effect { return e }
}

func hits(parties ...history.Party) history.Effect { return history.Effect{Hits: parties} }

// hang is the effect of one server that does not answer for so short a time that no other takes its place. With
// independent sites the others go on.
func hang(s Scene) history.Effect {
	return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: s.Sites > 2}
}

// outage is the effect of one server that does not answer for long: a replica takes its place if there is one.
func outage(s Scene) history.Effect {
	e := hang(s)
	if s.redundant() && !s.Keeps {
		e.Loses = history.LosesWrites
	}
	return e
}

// death is the effect of a server that comes back without its keys, at once or later.
func death(s Scene) history.Effect {
	e := outage(s)
	if !s.redundant() && !s.Keeps {
		e.Loses, e.Spares = history.LosesKeys, false // a grant on a bare majority of the sites loses its majority
	}
	return e
}

// keysLost is the effect of a server that loses its keys.
func keysLost(blocks bool) func(Scene) history.Effect {
	return always(history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: blocks})
}

// cut is the effect of links that carry nothing.
func cut(s Scene) history.Effect {
	e := outage(s)
	e.Hits, e.Spares = []history.Party{history.Links}, false // clients may be cut from all sites
	return e
}

// ownServers says why faults that need the servers' processes are unavailable on servers of others.
func ownServers(string) string {
	return "needs servers of the suite's own, and those of --addr run already"
}

// ownMemory says why faults that use up a server's memory are unavailable on servers of others.
func ownMemory(string) string {
	return "uses up the memory of the server, which belongs to others"
}

// When returns a function that gives the reason in scenes for which holds is true, and none in others.
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
	// Only the suite's own clients follow a manual failover; a program does not.
	needsHeirs = func(s Scene) string {
		if s.Program && !s.Can.Find && s.redundant() {
			return "a program is not told which replica an operator has promoted: topology sentinel or cluster"
		}
		return needsReplicas(s)
	}
	needsQuorum = When(func(s Scene) bool { return s.Sites < 3 }, "needs independent sites: topology redlock")
	// Links in front of servers of others carry clients only.
	needsNodes = When(func(s Scene) bool { return s.Nodes < 2 && s.Can.Own }, "needs more than one node")
)
