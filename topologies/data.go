package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// anyNode returns the configuration that all nodes share.
func anyNode(n *Node) []directive {
	ip, port := splitAddr(n.back)
	return []directive{
		{"port", port}, {"bind", ip}, {"bind-source-addr", ip}, {"protected-mode", "no"}, {"daemonize", "no"},
		{"dir", "."}, {"requirepass", n.topology.password},
	}
}

// dataNode returns the configuration of a node that holds data. It persists nothing unless asked to. Replication goes
// through the disk. With diskless replication, a replica is reported online up to a second before it gets new
// commands, so a failover would lose locks.
func dataNode(n *Node) []directive {
	frontIP, frontPort := splitAddr(n.front)
	d := append(anyNode(n), []directive{
		{"save", `""`}, {"databases", strconv.Itoa(n.topology.database() + 1)}, {"maxclients", "8000"},
		{"masterauth", n.topology.password},
		{"replica-announce-ip", frontIP}, {"replica-announce-port", frontPort},
		{"repl-diskless-sync", "no"}, {"enable-debug-command", "yes"},
	}...)
	if user := n.topology.Options.User; user != "" {
		d = append(d, directive{"user " + user, "on >" + n.topology.clientPassword() + " ~* &* +@all"})
	}
	if sync := n.topology.Options.Durable; sync == "" {
		d = append(d, directive{"appendonly", "no"})
	} else { // the file is never rewritten, so a power loss can only lose its end
		d = append(d, directive{"appendonly", "yes"}, directive{"appendfsync", string(sync)},
			directive{"auto-aof-rewrite-percentage", "0"})
	}
	if least := n.topology.Options.MinReplicas; least > 0 {
		d = append(d, directive{"min-replicas-to-write", strconv.Itoa(least)}, directive{"min-replicas-max-lag", "1"})
	}
	if n.topology.Options.Profile == Fast {
		d = append(d, directive{"repl-ping-replica-period", "1"}, directive{"repl-timeout", "5"})
	}
	n.topology.record(d, "save", "appendonly", "appendfsync", "min-replicas-to-write", "min-replicas-max-lag",
		"repl-diskless-sync", "repl-ping-replica-period", "repl-timeout")
	return d
}

// record adds the named directives to the settings in the run record.
func (t *Topology) record(d []directive, names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range d {
		if slices.Contains(names, d.name) {
			t.Settings[d.name] = d.value
		}
	}
}

// follow makes a running node a replica of another node. It sends REPLICAOF, because after a restart with the directive
// the replica would connect only at the next timer. It also rewrites the configuration, for restarts.
func follow(ctx context.Context, n, primary *Node) error {
	ip, port := splitAddr(primary.front)
	return n.run(ctx, []any{"REPLICAOF", ip, port}, []any{"CONFIG", "REWRITE"})
}

// followed returns nil if all replicas are linked to the primary and a test write reaches each of them. It reads INFO
// before WAIT, because WAIT counts a replica that has not yet loaded its snapshot.
func followed(ctx context.Context, primary *Node, replicas []*Node) error {
	for _, n := range replicas {
		info, err := n.replication(ctx)
		if err != nil {
			return err
		}
		if info["role"] != "slave" || info["master_link_status"] != "up" || info["master_sync_in_progress"] != "0" {
			return fmt.Errorf("node %s: role %s, link to its primary %s", n.Name, info["role"],
				info["master_link_status"])
		}
	}
	info, err := primary.replication(ctx)
	if err != nil {
		return err
	}
	online := 0
	for name, value := range info {
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			online++
		}
	}
	// more replicas may be online: a program that taps the replication stream counts as one
	if info["role"] != "master" || online < len(replicas) {
		return fmt.Errorf("node %s: role %s, %d of %d replicas online", primary.Name, info["role"], online,
			len(replicas))
	}
	return reached(ctx, primary, len(replicas))
}

// reached writes a test key and waits until n replicas have it.
func reached(ctx context.Context, primary *Node, n int) error {
	conn := primary.control.Conn() // WAIT covers only the writes of its own connection
	defer func() { _ = conn.Close() }()
	key, err := probe(ctx, conn)
	if err != nil {
		return fmt.Errorf("node %s: probe: %w", primary.Name, err)
	}
	got, err := conn.Wait(ctx, n, 200*time.Millisecond).Result()
	if err = errors.Join(err, conn.Del(ctx, key).Err()); err != nil {
		return fmt.Errorf("node %s: WAIT: %w", primary.Name, err)
	}
	if got < int64(n) {
		return fmt.Errorf("node %s: a write reached %d of %d replicas", primary.Name, got, n)
	}
	return nil
}

// probe writes a test key. On a cluster node it tries keys until the node owns the slot.
func probe(ctx context.Context, conn *redis.Conn) (key string, err error) {
	for i := range 100 {
		key = "hammerlock:probe:" + strconv.Itoa(i)
		if err = conn.Set(ctx, key, "1", time.Second).Err(); err == nil || !redis.HasErrorPrefix(err, "MOVED") {
			break
		}
	}
	return key, err
}

func nodeName(prefix string, i int) string { return prefix + strconv.Itoa(i+1) }
