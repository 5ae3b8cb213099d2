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

// Engine describes how servers other than Redis are started, queried and ended. All engines have the same addresses,
// proxies, signals and cleanup. Locks on them make their own clients.
type Engine struct {
	Name string // locks choose their client library by this name
	// Find looks for an installed server. Its error says how to install one.
	Find    func(ctx context.Context) (Server, error)
	Prepare func(ctx context.Context, n *Node) error
	// Command returns the command that runs the server. The server must listen at n.Back() and announce n.Addr().
	Command func(n *Node) (*exec.Cmd, error)
	// Info returns fields with the names of INFO in Redis: role (master or slave) and connected_clients. No error
	// means that this process works, not that the whole deployment works.
	Info  func(ctx context.Context, n *Node) (map[string]string, error)
	Ready func(ctx context.Context, n *Node) error
	// Empty deletes all clients' data, so that the next run can use the same nodes; nil if the engine cannot do that.
	Empty func(ctx context.Context, nodes []*Node) error
	// Expire ends the session of a lock client, as if it had sent no heartbeat for too long; nil if the engine has no
	// sessions.
	Expire func(ctx context.Context, n *Node, lock string) error
	// End is the signal that makes a server exit and clean up; 0 = SIGKILL. Sweep removes files that a killed server
	// leaves outside its directory; may be nil.
	End   syscall.Signal
	Sweep func(n *Node) error
	// Asks tells whether bytes from a client are a command with an effect. The fault drop-reply drops replies to such
	// commands only.
	Asks func(sent []byte) bool
	// PeerLinks maps the address of each proxy for peers of the node to the address behind it. It is nil if there
	// are no such proxies, or if Proxied is true.
	PeerLinks func(n *Node) map[string]string
	// Proxied means that the server connects to its peers through the SOCKS proxy Node.Proxy.
	Proxied bool
	// Unprivileged means that the server refuses to run as root; then it runs as the user nobody.
	Unprivileged bool
	// Keeps means that acknowledged writes survive a kill of the server.
	Keeps bool

	// starts a server inside this process; nil = the server is a separate process
	inside  func(*Node) error
	answers func(context.Context, *Node) error // returns nil if the server answers; nil = Info is used
	// returns nil if the answering server is the process that was started; may be nil
	identify func(context.Context, *Node) error
	// time limit for a start (databases create system tables, Java loads classes); 0 = joinTimeout
	within time.Duration
	groups bool // child processes of the server stay in its process group, so a signal to the group reaches them
}

func (n *Node) engine() *Engine { return n.topology.engine }

func (e *Engine) serves(ctx context.Context, n *Node) error {
	if e.answers != nil {
		return e.answers(ctx, n)
	}
	_, err := e.Info(ctx, n)
	return err
}

// known returns nil if the answering server is the process that was started. It stores the run id.
func (e *Engine) known(ctx context.Context, n *Node) error {
	if e.identify != nil {
		return e.identify(ctx, n)
	}
	n.runID = strconv.Itoa(n.child.PID())
	return nil
}

// PeerPort is added to a node's port; the sum is the port for its peers.
const PeerPort = busOffset

// Topology completes a Spec whose nodes run on this engine. All nodes form one site.
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

// Installed returns nil if the server programs of the topology are on this machine. For Redis, see FindServer.
func (s Spec) Installed(ctx context.Context) error {
	if s.engine == nil {
		return nil
	}
	_, err := s.engine.Find(ctx)
	return err
}

// errEngine means that a Redis command was sent to another engine.
var errEngine = errors.New("the server takes no commands of Redis")

// Dir returns the node's directory, in which the server may write.
func (n *Node) Dir() string { return n.dir }

// Back returns the address at which the server listens.
func (n *Node) Back() string { return n.back }

// asker holds an engine's connection to a node.
type asker struct {
	mu    sync.Mutex
	value io.Closer
}

// Asker returns an engine's own connection to a node, without a proxy. The first call opens it; it is closed with the
// node.
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

// Server returns the program that runs on the node.
func (n *Node) Server() Server { return n.topology.Options.Server }

// Peers returns all nodes of the topology, including this one.
func (n *Node) Peers() []*Node { return n.topology.Nodes }

// Password returns the password of all servers of the topology.
func (n *Node) Password() string { return n.topology.password }

// User returns the account for a server that refuses to run as root; nil = the suite's own account.
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

// end ends a node for good and cleans up. An engine's End signal goes to the server process only, which
// ends its children.
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

// quit sends the server a signal, and SIGKILL if it has not exited in time.
func (n *Node) quit(with syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return nil
	}
	n.killed = true
	all := n.family()
	if err := errors.Join(n.signal(syscall.SIGCONT), n.child.cmd.Process.Signal(with)); err != nil {
		return err
	}
	select {
	case <-n.child.Ended():
		return await(all)
	case <-time.After(endTimeout):
		return n.finish(syscall.SIGKILL)
	}
}

// family returns the descendants of a server whose children may leave its process group. Without /proc it returns
// nil.
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
	all = children[n.child.PID()]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

func parentOf(pid int) (parent int) {
	stat := processStat(pid)
	if len(stat) < 2 || stat[0] == "Z" || stat[0] == "X" {
		return 0
	}
	parent, _ = strconv.Atoi(stat[1])
	return parent
}

// await waits until all these processes have ended. After endTimeout it returns an error.
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

// leader returns the node that accepts writes. A single node is returned even if it is down; several nodes are asked
// for their roles.
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

// Shifted returns the address with the offset added to its port.
func Shifted(addr string, by int) string {
	host, port := splitAddr(addr)
	n, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+by))
}
