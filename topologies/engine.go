package topologies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Engine is a server that is not Redis, as far as it differs: how its nodes are started, asked and ended. All else is
// the same for all: addresses, links, signals, and an end that leaves nothing. Its clients are the locks' own affair.
type Engine struct {
	Name string // as those name it that are its clients
	// Find says what is installed here; its error says how to install it.
	Find func(ctx context.Context) (Server, error)
	// Prepare fills a node's directory before its first start; nil if it needs nothing.
	Prepare func(ctx context.Context, n *Node) error
	// Command is the process that is the node. It listens at Back, and tells others that it is at Addr.
	Command func(n *Node) (*exec.Cmd, error)
	// Info says what INFO of Redis would, in its words: role, which is master or slave, and connected_clients. An
	// answer means that the process serves, not that the deployment does.
	Info func(ctx context.Context, n *Node) (map[string]string, error)
	// Ready returns nil if a write through the node succeeds.
	Ready func(ctx context.Context, n *Node) error
	// Empty removes what clients have left on the nodes, so that the next run can have them; nil if that cannot be
	// done.
	Empty func(ctx context.Context, nodes []*Node) error
	// Expire ends the session that a lock is held with, as if its client had been silent for too long; nil if there are
	// none.
	Expire func(ctx context.Context, n *Node, lock string) error
	// End is the signal that ends a node that is to leave nothing; 0 = SIGKILL. Sweep removes what a node that was
	// killed leaves outside its directory; nil if that is nothing.
	End   syscall.Signal
	Sweep func(n *Node) error
	// Asks tells whether what a client sends is a command with an effect: the fault drop-reply loses the answers to
	// those.
	Asks func(sent []byte) bool
	// PeerLinks are the addresses, each with the one behind it, at which links stand between a node and its peers; nil
	// if there are none, or Proxied.
	PeerLinks func(n *Node) map[string]string
	// Proxied says that a node's server connects to its peers through Node.Proxy.
	Proxied bool
	// Unprivileged says that the server refuses to be root: then it runs as nobody.
	Unprivileged bool
	// Keeps says that what the server has acknowledged outlives its death.
	Keeps bool

	// starts a server in the suite: it has no process, and no address of the run's; nil = it is a process
	inside   func(*Node) error
	answers  func(context.Context, *Node) error // nil = it tells Info
	identify func(context.Context, *Node) error // tells whether the node is that process; nil = it is
	// in which the nodes start; 0 = joinTimeout: databases write system tables first, Java loads classes
	within time.Duration
	groups bool // the processes that it starts stay in its group
}

func (n *Node) engine() *Engine { return n.topology.engine }

// serves returns nil if the node answers.
func (e *Engine) serves(ctx context.Context, n *Node) error {
	if e.answers != nil {
		return e.answers(ctx, n)
	}
	_, err := e.Info(ctx, n)
	return err
}

// known makes sure that the node is the process that was started.
func (e *Engine) known(ctx context.Context, n *Node) error {
	if e.identify != nil {
		return e.identify(ctx, n)
	}
	n.runID = strconv.Itoa(n.process.Process.Pid)
	return nil
}

// PeerPort is the distance from a node's port to the one that is kept free for its peers.
const PeerPort = busOffset

// Topology completes a spec whose nodes the engine runs, which are one site.
func (e *Engine) Topology(s Spec) Spec {
	s.engine, s.Sites = e, 1
	s.shape = func(t *Topology) {
		for i := range s.Nodes {
			t.add(nodeName("n", i), Primary, nil)
		}
		t.site("main", t.Nodes...)
	}
	s.healthy = func(ctx context.Context, t *Topology) error {
		if _, _, err := roles(ctx, t.Nodes); err != nil {
			return err
		}
		return t.each(func(n *Node) error { return e.Ready(ctx, n) })
	}
	return s
}

// Expire ends the session that a lock is held with, as if its client had been silent for too long.
func (t *Topology) Expire(ctx context.Context, lock string) error {
	if !t.Spec.Can().Expire {
		return errors.New("the servers keep no sessions")
	}
	n, err := t.Sites[0].leader(ctx)
	if err != nil {
		return err
	}
	return t.Spec.engine.Expire(ctx, n, lock)
}

// Installed returns nil if this machine has the topology's servers. Redis is looked for by FindServer.
func (s Spec) Installed(ctx context.Context) error {
	if s.engine == nil {
		return nil
	}
	_, err := s.engine.Find(ctx)
	return err
}

// errEngine is the answer to a command of Redis.
var errEngine = errors.New("the server takes no commands of Redis")

// Dir is the node's own directory, which its server may write to.
func (n *Node) Dir() string { return n.dir }

// Back is the address that the server listens at.
func (n *Node) Back() string { return n.back }

// asker is what an engine asks a node with.
type asker struct {
	mu    sync.Mutex
	value io.Closer
}

// Asker is what an engine keeps to ask a node with, such as connections past all links. It is opened when it is first
// needed and closed with the node.
func Asker[T io.Closer](n *Node, open func(*Node) (T, error)) (T, error) {
	a := &n.asker
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept, ok := a.value.(T); ok {
		return kept, nil
	}
	value, err := open(n)
	if err == nil {
		a.value = value
	}
	return value, err
}

func (a *asker) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.value == nil {
		return nil
	}
	err := a.value.Close()
	a.value = nil
	return err
}

// Server is the program that runs as the node.
func (n *Node) Server() Server { return n.topology.Options.Server }

// Peers are all nodes of the topology, in their order.
func (n *Node) Peers() []*Node { return n.topology.Nodes }

// Password is that of all servers of the topology.
func (n *Node) Password() string { return n.topology.password }

// User is who the node's server runs as if it refuses to be root; nil where that is who the suite is.
func (n *Node) User() (*syscall.Credential, error) {
	e := n.engine()
	if !e.Unprivileged || os.Geteuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("%s does not run as root: %w", e.Name, err)
	}
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, groupErr := strconv.ParseUint(nobody.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, groupErr)
}

// prepare makes the node's directory at its first start.
func (n *Node) prepare(ctx context.Context) error {
	e := n.engine()
	if n.prepared {
		return nil
	}
	who, err := n.User()
	if err == nil {
		err = os.Mkdir(n.dir, 0o700)
	}
	if err == nil && who != nil {
		err = errors.Join(os.Chown(n.topology.dir, int(who.Uid), int(who.Gid)),
			os.Chown(n.dir, int(who.Uid), int(who.Gid)))
	}
	if err == nil && e.Prepare != nil {
		err = e.Prepare(ctx, n)
	}
	n.prepared = err == nil
	return err
}

// command is what runs as the node.
func (n *Node) command() (*exec.Cmd, error) {
	who, err := n.User()
	if err != nil {
		return nil, err
	}
	cmd, err := n.engine().Command(n)
	if err == nil && who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	return cmd, err
}

// end ends a node for good, so that nothing of it is left. An engine's own signal is for the server alone, which ends
// what it has started.
func (n *Node) end() error {
	e := n.engine()
	if err := n.asker.close(); err != nil {
		return err
	}
	switch {
	case n.State() == Down:
	case e.End == 0:
		if err := n.Kill(); err != nil {
			return err
		}
	default:
		if err := n.quit(e.End); err != nil {
			return err
		}
	}
	if e.Sweep == nil || !n.prepared {
		return nil
	}
	return e.Sweep(n)
}

// quit asks the server to end, and kills it if it takes too long.
func (n *Node) quit(with syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return nil
	}
	n.killed = true
	all := n.family()
	if err := errors.Join(n.signal(syscall.SIGCONT), n.process.Process.Signal(with)); err != nil {
		return err
	}
	select {
	case <-n.ended:
		return await(all)
	case <-time.After(endTimeout):
		return n.finish(syscall.SIGKILL)
	}
}

// family is the processes that a server has started whose processes may leave its group. There are none where there is
// no /proc.
func (n *Node) family() (all []int) {
	if n.engine().groups {
		return nil
	}
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if parent := parentOf(pid); parent > 0 {
				children[parent] = append(children[parent], pid)
			}
		}
	}
	all = children[n.process.Process.Pid]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// parentOf is the parent of a process; 0 if that has ended.
func parentOf(pid int) (parent int) {
	stat := processStat(pid)
	if len(stat) < 2 || stat[0] == "Z" || stat[0] == "X" {
		return 0
	}
	parent, _ = strconv.Atoi(stat[1])
	return parent
}

// await returns when the processes have ended.
func await(pids []int) error {
	ticker, late := time.NewTicker(time.Millisecond), time.After(endTimeout)
	defer ticker.Stop()
	for _, pid := range pids {
		for parentOf(pid) > 0 {
			select {
			case <-ticker.C:
			case <-late:
				return fmt.Errorf("process %d does not end", pid)
			}
		}
	}
	return nil
}

// leader is the node that takes writes, up or down: of one node it is that, of several the one that says so.
func (s *Site) leader(ctx context.Context) (*Node, error) {
	if len(s.Nodes) == 1 {
		return s.Nodes[0], nil
	}
	for _, n := range s.Nodes {
		if n.State() != Up {
			continue
		}
		if info, err := n.Info(ctx); err == nil && info["role"] == "master" {
			return n, nil
		}
	}
	return nil, errors.New("no node says that it is the leader")
}

// Shifted is an address with another port.
func Shifted(addr string, by int) string {
	host, port := splitAddr(addr)
	n, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+by))
}
