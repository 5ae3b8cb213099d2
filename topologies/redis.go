package topologies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisServers is the engine for Redis and for servers with its protocol, such as Valkey. Options.Server names the
// program.
var redisServers = &Engine{
	Prepare: configure,
	Command: func(n *Node) (*exec.Cmd, error) {
		args := []string{n.confPath()}
		if n.Role == Sentinel {
			args = append(args, "--sentinel")
		}
		// if a replica needed a full synchronization, the server has written its keys to this file, and would
		// load them now
		if err := os.Remove(filepath.Join(n.dir, "dump.rdb")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		return exec.Command(n.topology.Options.Server.Path, args...), nil
	},
	Info: func(context.Context, *Node) (map[string]string, error) {
		return nil, errors.New("the server has not been started")
	},
	Ready:    func(ctx context.Context, n *Node) error { return reached(ctx, n, 0) },
	Empty:    flush,
	Asks:     asksRedis,
	answers:  pings,
	identify: identifyRedis,
	within:   startTimeout,
	groups:   true,
}

// configure writes the configuration file at the first start. The file has the password, because every user of the
// machine can read command lines.
func configure(_ context.Context, n *Node) error {
	var b strings.Builder
	for _, d := range n.config(n) {
		fmt.Fprintf(&b, "%s %s\n", d.name, d.value)
	}
	if err := os.WriteFile(n.confPath(), []byte(b.String()), 0o600); err != nil {
		return err
	}
	if err := n.shimFiles(); err != nil {
		return err
	}
	n.controlled().AddHook(&n.sent)
	return nil
}

// controlled makes the suite's own client of the node.
func (n *Node) controlled() *redis.Client {
	to := controlOptions{addr: n.back, login: Login{password: n.topology.password}, clustered: n.topology.clustered()}
	if n.Role != Sentinel {
		to.db = n.topology.database()
	}
	n.control = newControl(to)
	return n.control
}

// pings returns nil if the server accepts connections and has loaded its data. It dials first, because after some
// failures the client's pool tries only once a second.
func pings(ctx context.Context, n *Node) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", n.back)
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	return n.control.Ping(ctx).Err()
}

// identifyRedis checks that the answering server is the process that was started. Otherwise signals would go to
// another process.
func identifyRedis(ctx context.Context, n *Node) error {
	info, err := n.Info(ctx, "server")
	if err != nil {
		return err
	}
	if pid := strconv.Itoa(n.child.PID()); info["process_id"] != pid {
		return fmt.Errorf("%s was started as process %s, but the server is process %s, which no fault would reach: %w",
			n.topology.Options.Server.Path, pid, info["process_id"], errWrapped)
	}
	n.runID = info["run_id"]
	return nil
}
