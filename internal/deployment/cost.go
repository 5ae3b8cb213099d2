package deployment

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Cost is the work of the servers so far.
type Cost struct {
	Known    bool // the servers could be asked
	Commands int64
	CPU      time.Duration

	servers string // identifies the server processes: one that was restarted has lost its counts
}

// Since is the work between two readings.
func (c Cost) Since(before Cost) Cost {
	return Cost{Known: c.Known && before.Known && c.servers == before.servers, Commands: c.Commands - before.Commands,
		CPU: c.CPU - before.CPU}
}

// managing are the commands that make connections, keep them and ask for roles, whoever sends them: no visit does. All
// others count, but for those that the suite and sentinels have sent. A server tells how often it has executed a
// command, and not for whom: CLIENT LIST of Redis 7 counts no commands. So the suite counts what it sends itself, and
// sentinels' messages as they come. Measured over 2.5 s on each topology without visits: nothing is left of hundreds of
// commands, where sentinels alone had sent 72 messages to a replica. The clients of locks sent none of the commands
// below in 3 s of visits on single and redlock; on cluster, they asked for its map about five times a second. SUBSCRIBE
// is a lock's: where two workers contend, Redisson's sends one for each visit.
var managing = map[string]bool{
	"auth": true, "client": true, "cluster": true, "command": true, "config": true, "hello": true, "info": true,
	"ping":  true,
	"psync": true, "replconf": true, "replicaof": true, "role": true, "select": true, "sentinel": true, "slaveof": true,
	"sync": true,
}

// costTimeout is how long the servers may take to report their work.
const costTimeout = time.Second

// Cost asks every data node what it has executed. Commands in scripts and on replicas count. It is unknown for attached
// servers, since other clients use them as well, and for servers that are not Redis.
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
				first, _, _ := strings.Cut(value, ",") // of "calls=12,usec=..."
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
