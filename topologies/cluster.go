package topologies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	clusterPrimaries = 3
	clusterSlots     = 16384
)

var cluster = Spec{
	Name: "cluster",
	Doc: "three primaries that share the keys, each with one asynchronous replica; the majority promotes a " +
		"replica",
	Sites:    1,
	Nodes:    6,
	Copies:   1,
	Recovery: time.Second,
	shape: func(t *Topology) {
		for i := range 2 * clusterPrimaries {
			role := Primary
			if i >= clusterPrimaries {
				role = Replica
			}
			t.add(nodeName("n", i), role, clusterNode)
		}
		s := t.site("main", t.Nodes...)
		s.Cluster, s.access.DB = true, 0
	},
	join:    joinCluster,
	healthy: clusterHealthy,
}

func clusterNode(n *Node) []directive {
	_, port := splitAddr(n.back)
	frontIP, frontPort := splitAddr(n.front)
	d := []directive{
		{"cluster-enabled", "yes"}, {"cluster-config-file", "nodes.conf"},
		{"cluster-replica-validity-factor", "0"}, {"cluster-allow-replica-migration", "no"},
		{"cluster-require-full-coverage", "no"},
		{"cluster-port", busPort(port)}, {"cluster-announce-ip", frontIP},
		{"cluster-announce-port", frontPort}, {"cluster-announce-bus-port", busPort(frontPort)},
	}
	if n.topology.Options.Profile == Fast {
		d = append(d, directive{"cluster-node-timeout", "500"})
	}
	n.topology.record(d, "cluster-node-timeout", "cluster-replica-validity-factor", "cluster-allow-replica-migration",
		"cluster-require-full-coverage")
	return append(dataNode(n), d...)
}

func busPort(port string) string {
	p, _ := strconv.Atoi(port)
	return strconv.Itoa(p + busOffset)
}

// joinCluster assigns the slots and gives each primary its replicas. Every node sends CLUSTER MEET to the others,
// because gossip would take longer.
func joinCluster(ctx context.Context, t *Topology) error {
	for i, n := range t.Nodes {
		commands := [][]any{{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}}
		if i < clusterPrimaries {
			from, to := clusterSlots*i/clusterPrimaries, clusterSlots*(i+1)/clusterPrimaries-1
			commands = append(commands, []any{"CLUSTER", "ADDSLOTSRANGE", from, to})
		}
		for _, other := range t.Nodes[:i] {
			ip, port := splitAddr(other.front)
			commands = append(commands, []any{"CLUSTER", "MEET", ip, port, busPort(port)})
		}
		if err := n.run(ctx, commands...); err != nil {
			return err
		}
	}
	if err := poll(ctx, pollEvery, func() error {
		return t.each(func(n *Node) error { return met(ctx, n) })
	}); err != nil {
		return err
	}
	for i, n := range t.Nodes[clusterPrimaries:] {
		id, err := t.Nodes[i].Do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			return fmt.Errorf("node %s: CLUSTER MYID: %w", t.Nodes[i].Name, err)
		}
		if err := n.run(ctx, []any{"CLUSTER", "REPLICATE", id}); err != nil {
			return err
		}
	}
	return nil
}

// member is a line of CLUSTER NODES.
type member struct {
	id, addr, flags, primary, link string
	name                           string // address with the host name that the node announces; empty = none
	epoch                          int
	slots                          []string
}

func members(ctx context.Context, n *Node) ([]member, error) {
	text, err := n.control.ClusterNodes(ctx).Result()
	if err != nil {
		return nil, err
	}
	var all []member
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			return nil, errors.New("CLUSTER NODES: short line " + line)
		}
		addr, more, _ := strings.Cut(f[1], "@")
		epoch, err := strconv.Atoi(f[6])
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES: epoch: %w", err)
		}
		m := member{id: f[0], addr: addr, flags: f[2], primary: f[3], link: f[7], epoch: epoch, slots: f[8:]}
		// after the bus port comes a comma and the host name
		if fields := strings.Split(more, ","); len(fields) > 1 && fields[1] != "" {
			_, port := splitAddr(addr)
			m.name = net.JoinHostPort(fields[1], port)
		}
		all = append(all, m)
	}
	return all, nil
}

// met returns nil if a node is connected to all other nodes.
func met(ctx context.Context, n *Node) error {
	all, err := members(ctx, n)
	if err != nil {
		return err
	}
	if want := len(n.topology.Nodes); len(all) != want {
		return fmt.Errorf("knows %d of %d nodes", len(all), want)
	}
	for _, m := range all {
		for _, bad := range []string{"fail", "handshake", "noaddr"} {
			if strings.Contains(m.flags, bad) {
				return fmt.Errorf("sees %s with flags %s", m.addr, m.flags)
			}
		}
		if m.link != "connected" {
			return fmt.Errorf("has no link to %s", m.addr)
		}
	}
	return nil
}

func clusterHealthy(ctx context.Context, t *Topology) error {
	if err := t.each(func(n *Node) error { return clusterNodeHealthy(ctx, n) }); err != nil {
		return err
	}
	all, err := members(ctx, t.Nodes[0])
	if err != nil {
		return err
	}
	byID := map[string]*Node{}
	for _, m := range all {
		byID[m.id] = t.Sites[0].byAddr(m.addr)
	}
	replicas := map[*Node][]*Node{}
	for _, m := range all {
		if p := byID[m.primary]; p != nil {
			replicas[p] = append(replicas[p], byID[m.id])
		}
	}
	if len(replicas) != clusterPrimaries {
		return fmt.Errorf("%d of %d primaries have a replica", len(replicas), clusterPrimaries)
	}
	for primary, r := range replicas {
		if err := followed(ctx, primary, r); err != nil {
			return err
		}
	}
	return nil
}

func clusterNodeHealthy(ctx context.Context, n *Node) error {
	if n.State() != Up {
		return errors.New("is " + n.State().String())
	}
	text, err := n.control.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	for _, want := range []string{
		"cluster_state:ok", "cluster_slots_ok:" + strconv.Itoa(clusterSlots),
		"cluster_known_nodes:" + strconv.Itoa(len(n.topology.Nodes)), "cluster_size:" + strconv.Itoa(clusterPrimaries),
	} {
		if !strings.Contains(text, want+"\r\n") {
			return errors.New("CLUSTER INFO lacks " + want)
		}
	}
	return met(ctx, n)
}
