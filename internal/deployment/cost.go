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

	servers string // identifies the server processes, because a restarted server has lost its counts
}

// Since returns the work between two readings.
func (c Cost) Since(before Cost) Cost {
	return Cost{Known: c.Known && before.Known && c.servers == before.servers, Commands: c.Commands - before.Commands,
		CPU: c.CPU - before.CPU}
}

// managing lists the commands that open and keep connections, and ask for roles. A visit sends none of them, so they
// never count. Other commands count, except those of the suite and of sentinels. A server counts the calls of each
// command, but not for each client. So the suite counts the commands that it sends, and sentinels' messages as they
// arrive.
//
// Measured without visits over 2.5 s on each topology: the servers executed hundreds of commands, and none of them was
// counted. Sentinels alone had sent 72 messages to one replica. In 3 s of visits on single and redlock, the locks'
// clients sent none of the commands below. On cluster, they asked for its map about five times a second. SUBSCRIBE
// counts as a lock's command: when two workers contend, Redisson sends one for each visit.
var managing = map[string]bool{
	"auth": true, "client": true, "cluster": true, "command": true, "config": true, "hello": true, "info": true,
	"ping":  true,
	"psync": true, "replconf": true, "replicaof": true, "role": true, "select": true, "sentinel": true, "slaveof": true,
	"sync": true,
}

// costTimeout is the longest time that all servers together may take to report their work.
const costTimeout = time.Second

// Cost asks every data node for the commands that it has executed. Commands in scripts and on replicas count. The cost
// is unknown for attached servers, which have other clients, and for servers other than Redis.
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
