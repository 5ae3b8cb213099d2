package topologies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"hammerlock/topologies/links"
)

// Primary returns the node that serves a key, even if it is down. With sentinels, this is the node that most of them
// name. In a cluster, it is the owner of the key's slot in the newest configuration epoch. Without either, it is the
// first primary, or the node that an operator has promoted since.
func (s *Site) Primary(ctx context.Context, key string) (*Node, error) {
	switch {
	case s.Engine() != "":
		return s.leader(ctx)
	case s.Cluster:
		return s.slotOwner(ctx, key)
	case s.Master != "":
		return s.elected(ctx)
	default:
		return s.current(), nil
	}
}

// Replicas returns the nodes that are up and replicate from the primary.
func (s *Site) Replicas(ctx context.Context, primary *Node) ([]*Node, error) {
	var found []*Node
	for _, n := range s.Nodes {
		if n == primary || n.State() != Up {
			continue
		}
		info, err := n.replication(ctx)
		if err != nil {
			return nil, err
		}
		if info["role"] == "slave" && follows(info, primary) {
			found = append(found, n)
		}
	}
	return found, nil
}

func follows(info map[string]string, primary *Node) bool {
	addr := net.JoinHostPort(info["master_host"], info["master_port"])
	return addr == primary.front || addr == primary.peer
}

// Failover makes a replica the primary, even if the old primary is up. It returns the new primary when the new
// primary accepts writes and clients can find it. Writes that the replica does not have are lost. It fails for a
// server without a replica.
func (s *Site) Failover(ctx context.Context, primary *Node) (*Node, error) {
	next, err := s.failover(ctx, primary)
	if err != nil {
		return nil, fmt.Errorf("failover from %s: %w", primary.Name, err)
	}
	return next, nil
}

var errNoReplica = errors.New("no replica of it is up")

func (s *Site) failover(ctx context.Context, primary *Node) (*Node, error) {
	if s.Master != "" {
		return s.elect(ctx, primary)
	}
	next, err := s.freshest(ctx, primary)
	if err != nil {
		return nil, err
	}
	if s.Cluster {
		return next, takeOver(ctx, next, primary)
	}
	return next, s.promote(ctx, next, primary)
}

// Repair makes the other nodes replicas of the current primary, for example a former primary that has restarted. It
// does nothing in topologies with automatic failover.
func (s *Site) Repair(ctx context.Context) error {
	primary := s.byHand.Load()
	if primary == nil {
		return nil
	}
	for _, n := range s.Nodes {
		if n == primary || n.State() != Up {
			continue
		}
		info, err := n.replication(ctx)
		if err != nil {
			return err
		}
		if info["role"] == "slave" && follows(info, primary) {
			continue
		}
		if err := follow(ctx, n, primary); err != nil {
			return err
		}
	}
	return nil
}

// current returns the primary, in topologies where clients ask neither sentinels nor a cluster.
func (s *Site) current() *Node {
	if n := s.byHand.Load(); n != nil {
		return n
	}
	return s.seeds[0]
}

// freshest returns the replica with the highest replication offset.
func (s *Site) freshest(ctx context.Context, primary *Node) (*Node, error) {
	replicas, err := s.Replicas(ctx, primary)
	if err != nil {
		return nil, err
	}
	var best *Node
	most := -1
	for _, n := range replicas {
		info, err := n.replication(ctx)
		if err != nil {
			return nil, err
		}
		if offset, err := strconv.Atoi(info["slave_repl_offset"]); err == nil && offset > most {
			best, most = n, offset
		}
	}
	if best == nil {
		return nil, errNoReplica
	}
	return best, nil
}

// promote does a manual failover. The replica becomes the primary, clients are sent to it, and the other nodes
// replicate from it. An old primary that is cut off stays a primary until Repair.
func (s *Site) promote(ctx context.Context, next, old *Node) error {
	if err := next.run(ctx, []any{"REPLICAOF", "NO", "ONE"}, []any{"CONFIG", "REWRITE"}); err != nil {
		return err
	}
	s.byHand.Store(next)
	if err := s.publish(next); err != nil {
		return fmt.Errorf("publish the address of %s: %w", next.Name, err)
	}
	for _, n := range s.Nodes {
		if n == next || n.State() != Up || n == old &&
			old.topology.network.Apart(links.Party(old.Name), links.Party(next.Name)) {
			continue
		}
		if err := follow(ctx, n, next); err != nil {
			return err
		}
	}
	return nil
}

// takeOver sends CLUSTER FAILOVER, or CLUSTER FAILOVER TAKEOVER (without a vote) if the two nodes cannot talk to each
// other.
func takeOver(ctx context.Context, next, primary *Node) error {
	command := []any{"CLUSTER", "FAILOVER"}
	if primary.State() != Up || primary.topology.network.Apart(links.Party(primary.Name), links.Party(next.Name)) {
		command = append(command, "TAKEOVER")
	}
	if err := next.run(ctx, command); err != nil {
		return err
	}
	return poll(ctx, pollEvery, func() error { return leads(ctx, next) })
}

func leads(ctx context.Context, n *Node) error {
	info, err := n.replication(ctx)
	if err == nil && info["role"] != "master" {
		err = fmt.Errorf("node %s is no primary", n.Name)
	}
	return err
}

// elect asks a sentinel for a failover and waits until most sentinels name the new primary. It asks again if the
// request was refused, if the sentinel is down, or if the sentinel has given up, for example without a majority. It
// must not ask more often, because each accepted request causes a failover.
func (s *Site) elect(ctx context.Context, old *Node) (next *Node, err error) {
	var asked *Node
	err = poll(ctx, pollEvery, func() error {
		if next, err = s.elected(ctx); err == nil && next != old {
			return leads(ctx, next)
		}
		if asked != nil && asked.State() == Up {
			left, failed := s.left(ctx, asked, old)
			if failed != nil || left {
				return errors.Join(errors.New("the sentinels have not settled on another primary"), err, failed)
			}
		}
		for _, n := range s.seeds {
			if n.State() != Up {
				continue
			}
			err := n.Do(ctx, "SENTINEL", "FAILOVER", s.Master).Err()
			if err == nil || redis.HasErrorPrefix(err, "INPROG") {
				asked = n
				return errors.New("the failover has begun")
			}
			return fmt.Errorf("node %s: SENTINEL FAILOVER: %w", n.Name, err)
		}
		return errors.New("no sentinel is up")
	})
	return next, err
}

// left tells whether a sentinel has begun to replace a primary, or has replaced it.
func (s *Site) left(ctx context.Context, sentinel, primary *Node) (bool, error) {
	answer := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", s.Master)
	if err := sentinel.control.Process(ctx, answer); err != nil {
		return false, fmt.Errorf("node %s: SENTINEL MASTER: %w", sentinel.Name, err)
	}
	state := answer.Val()
	return strings.Contains(state["flags"], "failover_in_progress") ||
		s.byAddr(net.JoinHostPort(state["ip"], state["port"])) != primary, nil
}

// elected returns the primary that most sentinels name.
func (s *Site) elected(ctx context.Context) (*Node, error) {
	votes := map[string]int{}
	for _, n := range s.seeds {
		if n.State() != Up {
			continue
		}
		addr, err := n.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Master).StringSlice()
		if err != nil || len(addr) != 2 {
			return nil, fmt.Errorf("node %s: who is the primary: %v, %w", n.Name, addr, err)
		}
		votes[net.JoinHostPort(addr[0], addr[1])]++
	}
	for addr, n := range votes {
		if node := s.byAddr(addr); node != nil && n > len(s.seeds)/2 {
			return node, nil
		}
	}
	return nil, fmt.Errorf("the sentinels name %v, none by most of %d", votes, len(s.seeds))
}

// slotOwner asks all nodes and returns the owner with the highest configuration epoch, because a node that is cut off
// names an older owner.
func (s *Site) slotOwner(ctx context.Context, key string) (*Node, error) {
	var owner *Node
	var epoch int
	slot := -1
	for _, n := range s.Nodes {
		if n.State() != Up {
			continue
		}
		if slot < 0 {
			answer, err := n.Do(ctx, "CLUSTER", "KEYSLOT", key).Int()
			if err != nil {
				return nil, fmt.Errorf("node %s: CLUSTER KEYSLOT: %w", n.Name, err)
			}
			slot = answer
		}
		all, err := members(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		for _, m := range all {
			if m.owns(slot) && (owner == nil || m.epoch > epoch) {
				owner, epoch = s.byAddr(m.addr), m.epoch
			}
		}
	}
	if owner == nil {
		return nil, fmt.Errorf("no server has slot %d", slot)
	}
	return owner, nil
}

func (m member) owns(slot int) bool {
	return slices.ContainsFunc(m.slots, func(text string) bool {
		first, last, isRange := strings.Cut(text, "-")
		from, err := strconv.Atoi(first) // an entry in brackets is a slot that is being migrated
		to := from
		if isRange && err == nil {
			to, err = strconv.Atoi(last)
		}
		return err == nil && from <= slot && slot <= to
	})
}

// byAddr returns the node that clients or other nodes know by this address; nil if there is none.
func (s *Site) byAddr(addr string) *Node {
	i := slices.IndexFunc(s.Nodes, func(n *Node) bool { return n.front == addr || n.peer == addr })
	if i < 0 {
		return nil
	}
	return s.Nodes[i]
}
