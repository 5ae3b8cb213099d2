package topologies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Role is the role in which a node was started. A failover may change the actual role.
type Role string

// The roles.
const (
	Primary  Role = "primary"
	Replica  Role = "replica"
	Sentinel Role = "sentinel"
)

type Node struct {
	Name string
	Role Role

	topology *Topology
	config   func(*Node) []directive
	front    string // address that clients and peers use
	back     string // address at which the server listens
	// link is the address of the proxy, if it differs from front, as it does for attached servers.
	link string
	// peer is the node's address in replies of other nodes, if it differs from front: attached servers may use
	// addresses among themselves and host names for clients.
	peer string
	dir  string

	mu       sync.Mutex
	child    *Child // nil before the first start
	gate     *gate  // nil = no proxy
	paused   bool
	killed   bool   // the suite has killed the process
	runID    string // run id of the running server
	emptied  int    // number of times that the suite has deleted all keys of the node
	prepared bool   // the engine has filled the directory
	pid      atomic.Int64
	mini     *embeddedNode
	control  *redis.Client
	sent     sent
	hellos   *redis.PubSub // nil = no sentinels
	heard    sync.WaitGroup

	asker    asker        // connection of an engine other than Redis
	clockSet int64        // counter that grows with each change of the node's clock
	asleep   atomic.Int32 // number of running commands that block the server
}

type directive struct{ name, value string }

// Addr returns the address that clients and peers use.
func (n *Node) Addr() string { return n.front }

// Start runs the server and returns when it answers. It writes the configuration file at the first start only,
// because servers and sentinels change that file.
func (n *Node) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.topology.foreign() {
		return errForeign
	}
	if n.alive() {
		return errors.New("already running")
	}
	e := n.engine()
	if e.inside != nil {
		return e.inside(n)
	}
	if err := n.prepare(ctx); err != nil {
		return err
	}
	if err := n.spawn(); err != nil {
		return err
	}
	if err := n.gate.openToPeers(ctx); err != nil {
		return err
	}
	ended := n.child.Ended()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ended:
			cancel(errors.New("the server ended"))
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, 2*time.Millisecond, func() error { return e.serves(ctx, n) })
	if err == nil {
		err = e.known(ctx, n)
	}
	if err == nil {
		n.hearHellos(ctx)
		err = n.gate.open(ctx)
	}
	if errors.Is(err, errWrapped) {
		return err
	}
	if err != nil {
		return fmt.Errorf("start: %w\nits last log lines:\n%s", err, n.logTail(12))
	}
	return nil
}

func (n *Node) confPath() string { return filepath.Join(n.dir, "node.conf") }
func (n *Node) logPath() string  { return filepath.Join(n.dir, "node.log") }

func (n *Node) logTail(lines int) string {
	text, err := os.ReadFile(n.logPath())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return "  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}

// Do sends a command on the suite's own connection, which uses no proxy.
func (n *Node) Do(ctx context.Context, args ...any) *redis.Cmd {
	if n.control == nil {
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetErr(errEngine)
		return cmd
	}
	if len(args) > 0 && args[0] == "FLUSHALL" {
		n.mu.Lock()
		n.emptied++
		n.mu.Unlock()
	}
	return n.control.Do(ctx, args...)
}

// DoEach sends a command for each key in one pipeline. Each reply has its own error.
func (n *Node) DoEach(ctx context.Context, command string, keys []string) []*redis.Cmd {
	return doEach(ctx, n.control, command, keys)
}

func doEach(ctx context.Context, c *redis.Client, command string, keys []string) []*redis.Cmd {
	answers := make([]*redis.Cmd, len(keys))
	_, _ = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			answers[i] = p.Do(ctx, command, key)
		}
		return nil
	})
	return answers
}

// Info returns the fields of the given sections of INFO, or of all sections if none is given. On other engines it
// returns the role and the number of clients.
func (n *Node) Info(ctx context.Context, sections ...string) (map[string]string, error) {
	if n.control == nil {
		return n.engine().Info(ctx, n)
	}
	text, err := n.control.Info(ctx, sections...).Result()
	if len(sections) > 1 && redis.HasErrorPrefix(err, "syntax error") { // before Redis 7, INFO accepts one section only
		text, err = n.control.Info(ctx, "all").Result()
	}
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// SeesDown tells whether a sentinel or a cluster node considers a primary down, in agreement with others (ODOWN, or
// fail). For other nodes it returns false.
func (n *Node) SeesDown(ctx context.Context) (bool, error) {
	switch {
	case n.Role == Sentinel:
		info, err := n.Info(ctx, "sentinel")
		return strings.Contains(info["master0"], "status=odown"), err
	case slices.ContainsFunc(n.topology.Sites, func(s *Site) bool { return s.Cluster }):
		text, err := n.control.ClusterInfo(ctx).Result()
		return err == nil && !strings.Contains(text, "cluster_slots_fail:0\r"), err
	}
	return false, nil
}

func (n *Node) replication(ctx context.Context) (map[string]string, error) {
	info, err := n.Info(ctx, "replication")
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return info, nil
}

// run sends commands until one fails. The error quotes only the first two words of the command, because others may be
// a password.
func (n *Node) run(ctx context.Context, commands ...[]any) error {
	for _, c := range commands {
		if err := n.Do(ctx, c...).Err(); err != nil {
			return fmt.Errorf("node %s: %v: %w", n.Name, c[:2], err)
		}
	}
	return nil
}

func (n *Node) close() error {
	var errs []error
	if !n.topology.foreign() {
		errs = append(errs, n.end())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hellos != nil {
		errs = append(errs, n.hellos.Close())
		n.heard.Wait()
		n.hellos = nil
	}
	if n.control != nil {
		errs = append(errs, n.control.Close())
		n.control = nil
	}
	return errors.Join(errs...)
}
