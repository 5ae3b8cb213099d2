package topologies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const masterName = "hammerlock"

const sentinelQuorum = 2

var sentinel = Spec{
	Name: "sentinel",
	Doc: "a primary and three asynchronous replicas, watched by three sentinels that promote one when two of " +
		"them agree",
	Sites:    1,
	Nodes:    4,
	Copies:   3,
	Recovery: time.Second,
	shape: func(t *Topology) {
		for i := range 4 {
			role := Replica
			if i == 0 {
				role = Primary
			}
			t.add(nodeName("n", i), role, dataNode)
		}
		data := t.Nodes
		for i := range 3 {
			t.add(nodeName("s", i), Sentinel, sentinelNode)
		}
		s := t.site("main", t.Nodes[4:]...)
		s.Master, s.Nodes = masterName, data
	},
	join: func(ctx context.Context, t *Topology) error {
		data := t.Sites[0].Nodes
		if err := followFirst(ctx, data); err != nil {
			return err
		}
		// A sentinel reads the primary's list of replicas at its start, and then twice a second, so the replicas must
		// be there first.
		if err := poll(ctx, pollEvery, func() error { return followed(ctx, data[0], data[1:]) }); err != nil {
			return err
		}
		return each(t.sentinels(), func(n *Node) error { return watch(ctx, n, t.Nodes[0]) })
	},
	healthy: func(ctx context.Context, t *Topology) error {
		primary, replicas, err := roles(ctx, t.Sites[0].Nodes)
		if err != nil {
			return err
		}
		if err := each(t.sentinels(), func(n *Node) error { return agrees(ctx, n, primary, replicas) }); err != nil {
			return err
		}
		return followed(ctx, primary, replicas)
	},
}

func (t *Topology) sentinels() []*Node {
	return slices.DeleteFunc(slices.Clone(t.Nodes), func(n *Node) bool { return n.Role != Sentinel })
}

func sentinelNode(n *Node) []directive {
	frontIP, frontPort := splitAddr(n.front)
	return append(anyNode(n), []directive{
		{"sentinel announce-ip", frontIP}, {"sentinel announce-port", frontPort},
		{"sentinel resolve-hostnames", "no"}, {"sentinel sentinel-pass", n.topology.password},
	}...)
}

// Timers of the profile Fast. A PING-PERIOD below 300 ms would make failovers fail. A replica is promoted only if its
// last INFO is younger than five ping periods, and during a failover INFO is sent once a second.
var (
	fastWatch = map[string]string{
		"down-after-milliseconds": "500", "failover-timeout": "2000", "parallel-syncs": "3",
	}
	fastTimers = []any{"SENTINEL", "DEBUG", "PING-PERIOD", "300", "ASK-PERIOD", "100", "PUBLISH-PERIOD", "200",
		"INFO-PERIOD", "500", "ELECTION-TIMEOUT", "1000", "MIN-LINK-RECONNECT-PERIOD", "500"}
)

// watch tells a sentinel which primary to monitor, and sets its timers.
func watch(ctx context.Context, n, primary *Node) error {
	t := n.topology
	commands := [][]any{}
	if t.Options.Profile == Fast {
		commands = append(commands, fastTimers)
	}
	ip, port := splitAddr(primary.front)
	commands = append(commands,
		[]any{"SENTINEL", "MONITOR", masterName, ip, port, strconv.Itoa(sentinelQuorum)},
		[]any{"SENTINEL", "SET", masterName, "auth-pass", t.password})
	if t.Options.Profile == Fast {
		set := []any{"SENTINEL", "SET", masterName}
		for name, value := range fastWatch {
			set = append(set, name, value)
		}
		commands = append(commands, set)
	}
	if err := n.run(ctx, commands...); err != nil {
		return err
	}
	t.recordWatch()
	return nil
}

func (t *Topology) recordWatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Settings["sentinel quorum"] = strconv.Itoa(sentinelQuorum)
	if t.Options.Profile != Fast {
		return
	}
	for name, value := range fastWatch {
		t.Settings["sentinel "+name] = value
	}
	for i := 2; i < len(fastTimers); i += 2 {
		t.Settings["sentinel debug "+fastTimers[i].(string)] = fastTimers[i+1].(string)
	}
}

// agrees returns nil if a sentinel knows the primary, all replicas and the other sentinels, and reports no problem.
// A failover that begins before all sentinels agree may never end.
func agrees(ctx context.Context, n, primary *Node, replicas []*Node) error {
	m, err := n.control.Do(ctx, "SENTINEL", "MASTER", masterName).Slice()
	if err != nil {
		return err
	}
	master := pairs(m)
	if got := master["ip"] + ":" + master["port"]; got != primary.front {
		return fmt.Errorf("takes %s for the primary, not %s", got, primary.front)
	}
	others := len(n.topology.sentinels()) - 1
	if master["flags"] != "master" || master["num-slaves"] != strconv.Itoa(len(replicas)) ||
		master["num-other-sentinels"] != strconv.Itoa(others) {
		return fmt.Errorf("sees flags %s, %s replicas, %s other sentinels",
			master["flags"], master["num-slaves"], master["num-other-sentinels"])
	}
	if err := allFlagged(ctx, n, "REPLICAS", "slave"); err != nil {
		return err
	}
	if err := allFlagged(ctx, n, "SENTINELS", "sentinel"); err != nil {
		return err
	}
	return n.Do(ctx, "SENTINEL", "CKQUORUM", masterName).Err()
}

func allFlagged(ctx context.Context, n *Node, list, flag string) error {
	entries, err := n.control.Do(ctx, "SENTINEL", list, masterName).Slice()
	if err != nil {
		return err
	}
	for _, e := range entries {
		fields, ok := e.([]any)
		if !ok {
			return errors.New("SENTINEL " + list + ": not a list of lists")
		}
		if p := pairs(fields); !settled(p, flag) {
			return fmt.Errorf("sees %s with flags %s, link %s", p["name"], p["flags"], p["master-link-status"])
		}
	}
	return nil
}

// settled tells whether a sentinel reports no problem with a replica or another sentinel. It ignores the flag
// master_down, which Valkey 9.1 shows for a long time after a failover. The flag is not needed, because the suite
// asks every sentinel for its own view.
func settled(entry map[string]string, flag string) bool {
	if flag == "sentinel" {
		return strings.TrimSuffix(entry["flags"], ",master_down") == flag
	}
	return entry["flags"] == flag && entry["master-link-status"] == "ok"
}

// pairs makes a map from a sentinel's reply, a flat list of names and values.
func pairs(list []any) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[strings.TrimSpace(fmt.Sprint(list[i]))] = fmt.Sprint(list[i+1])
	}
	return m
}
