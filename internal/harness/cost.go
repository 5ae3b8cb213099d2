package harness

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hammerlock/locks"
	"hammerlock/results"
	"hammerlock/topologies"
)

// cost is what the lock has made its clients and servers do so far.
type cost struct {
	known    bool // the servers could be asked
	commands int64
	cpu      time.Duration
}

// housekeeping are the commands that servers, sentinels and the suite itself send all the time.
var housekeeping = map[string]bool{
	"info": true, "ping": true, "replconf": true, "publish": true, "hello": true, "auth": true, "client": true,
	"select": true, "cluster": true, "sentinel": true, "psync": true, "config": true, "command": true, "wait": true,
	"subscribe": true, "role": true, "replicaof": true, "slaveof": true,
}

// readCost asks every data node what it has executed. Commands in scripts count, and on replicas too.
func (s *stage) readCost(ctx context.Context) cost {
	c := cost{known: true}
	for _, n := range s.topology.Nodes {
		if n.Role == topologies.Sentinel {
			continue
		}
		info, err := n.Info(ctx, "commandstats", "cpu")
		if err != nil {
			c.known = false
			return c
		}
		for name, value := range info {
			command, isCommand := strings.CutPrefix(name, "cmdstat_")
			command, _, _ = strings.Cut(command, "|")
			if isCommand && !housekeeping[command] {
				c.commands += calls(value)
			}
		}
		for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
			seconds, err := strconv.ParseFloat(info[name], 64)
			c.known = c.known && err == nil
			c.cpu += time.Duration(seconds * float64(time.Second))
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

func (c cost) since(before cost) cost {
	return cost{c.known && before.known, c.commands - before.commands, c.cpu - before.cpu}
}

// per divides the cost among the counted visits. A lock that lives on sites and sent them nothing through the suite's
// clients makes connections of its own: nobody counts what goes over them.
func (c cost) per(visits, roundTrips int64, on locks.Sites) results.Cost {
	if visits == 0 {
		return results.Cost{}
	}
	share := func(x float64) *float64 {
		x /= float64(visits)
		return &x
	}
	var r results.Cost
	if roundTrips > 0 || on == locks.NoSite {
		r.RoundTrips = share(float64(roundTrips))
	}
	if c.known {
		r.Commands, r.ServerCPU = share(float64(c.commands)), share(float64(c.cpu))
	}
	return r
}
