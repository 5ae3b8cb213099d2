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
	// Sources are those that the fault fits; nil = workers, and programs whose servers it breaks.
	Sources []Source
	Redis   bool     // it asks of servers what only Redis can do
	Brief   bool     // it is over at once: no heal of a plan is for it
	Arg     argument // it takes an argument after its name and a colon; nil = none
	// Passes says that the fault, where it begins at a command of a program, is healed at once if no time is given.
	Passes bool
	// Message is what becomes of the command of a program, or its reply, at whose moment the fault is to happen; nil =
	// the fault breaks no single message.
	Message func(arg string) Message
	// Names are what an argument names in a scene, and what there is of the kind; nil = it names nothing.
	Names func(arg string, s Scene) (named, known []string)
	// Unavailable says why the fault is unavailable in a scene; empty or nil = it is available.
	Unavailable func(Scene) string
	// UnavailableAttached says why the fault, with the argument that it is given, is unavailable where others run the
	// servers; empty or nil = it is available.
	UnavailableAttached func(arg string) string
	// Sends names what the fault sends to servers that harms others who use them, as topologies.Destructive does.
	Sends []string
	// Effect says whom the fault hits in a scene and what it can do there: judges know nothing else of it.
	Effect func(Scene) history.Effect
	// lasts is how many leases and how much time besides go by until the fault is done, if it is not healed by a plan.
	lasts length
	// breaks says which assumption of a right lock the fault breaks in a scene; nil = what its effect says.
	breaks func(Scene) string
	// targets are the arguments that choose what the fault hits; nil = the fault finds it.
	targets func(*topologies.Topology) []string
	Inject  injection
}

// Message is what becomes of a command of a program, or of its reply.
type Message struct {
	Refuse string        // the command is not executed: this error is the reply
	Delay  time.Duration // the reply comes later
	Cut    bool          // the reply is lost, and the connection breaks
	Drop   bool          // the reply is lost, and the connection stays: the client waits
}

// Heal undoes a fault. What it hit is healthy only after a while.
type Heal func(context.Context) error

// Needs are what a topology must be brought up with.
type Needs struct {
	Links     bool // in front of every node
	Clock     bool // a clock of its own in every node
	Power     bool // a log on disk, and power that it can lose
	Processes bool // workers in processes of their own
}

// Or joins two needs.
func (n Needs) Or(o Needs) Needs {
	return Needs{n.Links || o.Links, n.Clock || o.Clock, n.Power || o.Power, n.Processes || o.Processes}
}

// Scene is where a fault is to happen.
type Scene struct {
	Source    Source
	Topology  string
	Sites     int
	Nodes     int      // that hold data
	Names     []string // of all nodes; nil = they are not known
	TTL       time.Duration
	Recovery  time.Duration // see topologies.Spec
	Can       topologies.Can
	Keeps     bool // a hold outlives the death of a server: it keeps what it has acknowledged
	Session   bool // a hold ends with its connection
	Claims    history.Claims
	Waits     bool // a try of the lock waits by itself: nobody is refused before his time is over
	Outlives  bool // what a worker holds lives on when the worker has died, but not without its process
	Program   bool // the lock lives in a program of its own
	Clocked   bool // ... whose wall clock can be set
	Shared    bool // one object of the lock serves all workers of a process
	Processes int
	Agents    int           // machines that the workers live on; 0 = the suite's own
	AllowLost bool          // some of them may be lost
	Silence   time.Duration // after which one is lost
	Programs  int           // of the service that is visited, or behind a wire: how many the suite has started
	Heeds     bool          // a holder that is late does not use what the lock guards
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
	Arg      string // what follows the fault's name and a colon
	Rand     *rand.Rand
	TTL      time.Duration
	Keys     int
	LockKey  func(key int32) string
	Caught   *Caught // the worker that triggered the fault, if one did
	Over     func()  // the fault calls it when nothing more will come of it, so that it is healed before its time
}

// Workers is the workers, as far as faults can get hold of them.
type Workers interface {
	// Catch stops the next worker that comes by a point with the key (or any, if it is negative).
	Catch(ctx context.Context, point string, key int32) (*Caught, error)
	// Process returns the process that a worker lives in; an error if it is the suite's own.
	Process(worker int32) (Process, error)
	// Agent returns the machine that a worker lives on; an error if it is the suite's own.
	Agent(worker int32) (Agent, error)
}

// Caught is a worker that stands where it was caught until it is told to go on or to die.
type Caught struct {
	Worker, Key int32
	At          string // the point
	Go, Die     func()
}

// where says where the worker stands.
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
	Source() int // of its clients, as links.ClientParty takes it
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

// catchTimeout bounds how long a fault waits for a worker that it needs.
const catchTimeout = 10 * time.Second

// ErrNobody says that no worker came where a fault waited for one.
var ErrNobody = errors.New("no worker came by")

// injection does what a fault is, says what it did and returns the function that undoes it; nil if nothing is left to
// undo.
type injection = func(context.Context, *Target) (what string, heal Heal, err error)

// holder is a worker that stands with a grant: the one that triggered the fault, or the next that comes by.
func (t *Target) holder(ctx context.Context, point string) (*Caught, error) {
	if t.Caught != nil {
		return t.Caught, nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	return t.Workers.Catch(ctx, point, -1)
}

// holding is the injection of a fault that holds a worker at a point meanwhile.
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

// ofPrimary is the injection of a fault that hits the node that serves a page's lock now.
func ofPrimary(inject func(context.Context, *Target, *topologies.Node) (string, Heal, error)) injection {
	return func(ctx context.Context, t *Target) (string, Heal, error) {
		_, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		return inject(ctx, t, primary)
	}
}

// link lets a rule of links be in force until the fault is healed.
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
		if r.Effect == links.Delay { // it is over when what was under way has arrived
			sleep(ctx, r.Latency+r.Jitter)
		}
		return nil
	}, nil
}

// primary is the node that serves a page's lock now, on the only site that has it, or any.
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

// act does what must not be left half done: the end of the run does not cut it short.
func act(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	return do(ctx)
}

// poll looks every few milliseconds until look says yes; it is false when ctx was done first.
func poll(ctx context.Context, look func() bool) bool {
	for !look() {
		if !sleep(ctx, 2*time.Millisecond) {
			return false
		}
	}
	return true
}

// restart is the heal of a killed node.
func restart(n *topologies.Node) Heal {
	return func(ctx context.Context) error {
		if n.State() != topologies.Down {
			return nil
		}
		return n.Start(ctx)
	}
}

// resume is the heal of a paused node.
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

// Breaks says which assumption of a right lock the fault breaks in a scene; empty if such a lock must survive.
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

// always is an effect that is the same in every scene.
func always(e history.Effect) func(Scene) history.Effect {
	return func(Scene) history.Effect { return e }
}

func hits(parties ...history.Party) history.Effect { return history.Effect{Hits: parties} }

// hang is the effect of one server that does not answer for so short a time that none takes its place. Of independent
// sites the others go on.
func hang(s Scene) history.Effect {
	return history.Effect{Hits: []history.Party{history.Servers}, Blocks: true, Spares: s.Sites > 2}
}

// outage is that of one server that does not answer: where there are replicas, one takes its place.
func outage(s Scene) history.Effect {
	e := hang(s)
	if s.redundant() && !s.Keeps {
		e.Loses = history.LosesWrites
	}
	return e
}

// death is that of a server that comes back without its keys, at once or later.
func death(s Scene) history.Effect {
	e := outage(s)
	if !s.redundant() && !s.Keeps {
		e.Loses, e.Spares = history.LosesKeys, false // what stood on a bare majority of the sites stands no longer
	}
	return e
}

// keysLost is that of a server whose keys are gone.
func keysLost(blocks bool) func(Scene) history.Effect {
	return always(history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys, Blocks: blocks})
}

// cut is that of links that carry nothing.
func cut(s Scene) history.Effect {
	e := outage(s)
	e.Hits, e.Spares = []history.Party{history.Links}, false // clients may be cut from all sites
	return e
}

// ownServers is of faults that take hold of the processes of servers.
func ownServers(string) string {
	return "needs servers of the suite's own, and those of --addr run already"
}

// ownMemory is of faults that use up a server's memory.
func ownMemory(string) string {
	return "uses up the memory of the server, which belongs to others"
}

// When gives a reason in the scenes in which something holds, and none in others.
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
	// The suite tells its own clients where they are to go, and no program.
	needsHeirs = func(s Scene) string {
		if s.Program && !s.Can.Find && s.redundant() {
			return "a program is not told which replica an operator has promoted: topology sentinel or cluster"
		}
		return needsReplicas(s)
	}
	needsQuorum = When(func(s Scene) bool { return s.Sites < 3 }, "needs independent sites: topology redlock")
	// Links of others have clients on one side.
	needsNodes = When(func(s Scene) bool { return s.Nodes < 2 && s.Can.Own }, "needs more than one node")
)
