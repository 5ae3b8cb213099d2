package deployment

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Cost is the work that the servers have done so far, for clients of the locks.
type Cost struct {
	Known    bool // false if servers could not be asked; then the other fields are meaningless
	Commands int64
	CPU      time.Duration

	servers string // identifies the server processes: after a restart, counts begin at 0
}

// Since returns the work between an earlier reading and the reading c. It is unknown if a server restarted in
// between.
func (c Cost) Since(before Cost) Cost {
	return Cost{Known: c.Known && before.Known && c.servers == before.servers, Commands: c.Commands - before.Commands,
		CPU: c.CPU - before.CPU}
}

// managing lists commands that never count as work for a visit: they open and keep connections, or ask for roles.
// Locks do not send them during visits. All other commands of locks count.
//
// A server counts calls by command, but not by client. So commands of the suite itself, and messages of sentinels,
// must be subtracted. The suite counts the former when it sends them, and the latter when they arrive.
//
// This was checked without visits, for 2.5 s on each topology: the servers executed hundreds of commands, and none
// counted. During 3 s of visits on single and redlock, the locks sent none of the commands below. On cluster, they
// asked for the map of the cluster five times a second.
//
// SUBSCRIBE is not in the list, because it can be work for a visit: under contention, Redisson sends it in each.
var managing = map[string]bool{
	"auth": true, "client": true, "cluster": true, "command": true, "config": true, "hello": true, "info": true,
	"ping":  true,
	"psync": true, "replconf": true, "replicaof": true, "role": true, "select": true, "sentinel": true, "slaveof": true,
	"sync": true,
}

// costTimeout limits the time in which all servers together report their work.
const costTimeout = time.Second

// Cost asks all data nodes how many commands they have executed, including those in scripts and on replicas. The
// result is unknown for attached servers, because they have other clients, and for servers other than Redis.
func (d *Deployment) Cost(ctx context.Context) Cost {
	if !d.Topology.Spec.Can().Count {
		return Cost{}
	}
	ctx, cancel := context.WithTimeout(ctx, costTimeout)
	defer cancel()
	c := Cost{Known: len(d.Topology.Nodes) > 0}
	for _, n := range d.Topology.Nodes {
		if n.Role == topologies.Sentinel {
			continue
		}
		others := n.Sent()
		info, err := n.Info(ctx, "server", "commandstats", "cpu")
		if err != nil {
			return Cost{}
		}
		c.servers += info["run_id"] + " "
		for name, value := range info {
			command, isCommand := strings.CutPrefix(name, "cmdstat_")
			command, _, _ = strings.Cut(command, "|")
			if isCommand && !managing[command] {
				first, _, _ := strings.Cut(value, ",") // the form is "calls=12,usec=..."
				n, _ := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
				c.Commands += n
			}
		}
		for command, n := range others {
			if !managing[command] {
				c.Commands -= n
			}
		}
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			seconds, err := strconv.ParseFloat(info[name], 64)
			c.Known = c.Known && err == nil
			c.CPU += time.Duration(seconds * float64(time.Second))
		}
	}
	return c
}
