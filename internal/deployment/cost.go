package deployment

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hammerlock/topologies"
)

// Cost is what a lock has made its servers do so far.
type Cost struct {
	Known    bool // the servers could be asked
	Commands int64
	CPU      time.Duration
}

// Since is what was done between two readings.
func (c Cost) Since(before Cost) Cost {
	return Cost{c.Known && before.Known, c.Commands - before.Commands, c.CPU - before.CPU}
}

// housekeeping are the commands that servers, sentinels and the suite itself send all the time.
var housekeeping = map[string]bool{
	"info": true, "ping": true, "replconf": true, "publish": true, "hello": true, "auth": true, "client": true,
	"select": true, "cluster": true, "sentinel": true, "psync": true, "config": true, "command": true, "wait": true,
	"subscribe": true, "role": true, "replicaof": true, "slaveof": true,
}

// costTimeout bounds how long the servers may take to say what they did.
const costTimeout = time.Second

// Cost asks every data node what it has executed. Commands in scripts count, and on replicas too.
func (d *Deployment) Cost(ctx context.Context) Cost {
	ctx, cancel := context.WithTimeout(ctx, costTimeout)
	defer cancel()
	c := Cost{Known: true}
	for _, n := range d.Topology.Nodes {
		if n.Role == topologies.Watchman {
			continue
		}
		info, err := n.Info(ctx, "commandstats", "cpu")
		if err != nil {
			return Cost{}
		}
		for name, value := range info {
			command, isCommand := strings.CutPrefix(name, "cmdstat_")
			command, _, _ = strings.Cut(command, "|")
			if isCommand && !housekeeping[command] {
				c.Commands += calls(value)
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

// calls reads "calls=12,usec=...".
func calls(value string) int64 {
	first, _, _ := strings.Cut(value, ",")
	n, err := strconv.ParseInt(strings.TrimPrefix(first, "calls="), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
