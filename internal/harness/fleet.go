package harness

import (
	"cmp"
	"time"

	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// Fleet is the machines that the workers live on.
type Fleet struct {
	Agents string     // as the command line has them; empty = the workers live on this machine
	Crew   crew.Maker // makes the crew of a run; nil = there are no agents
	Count  int        // of agents; 0 = there are none
	Local  bool       // all of them are on this machine
	// AllowLost lets a run that has lost some of them be judged by what the others have done.
	AllowLost bool
	Silence   time.Duration // after which one is lost
}

// fleetCounter takes the place of the default counter where agents are on other machines.
const fleetCounter = "topology"

// processes is how many processes the workers live in: those of the agents, or else as many as asked for.
func (f *Fleet) processes(asked int) int {
	return cmp.Or(f.Count, asked)
}

// judged is how many processes a judge tells apart. Those of agents are numbered from 1: what the suite itself records
// is process 0, whose clock is another one.
func (f *Fleet) judged(processes int) int {
	if f.Count > 0 {
		return f.Count + 1
	}
	return processes
}

// fleet finds what agents cannot do.
func (c *check) fleet() {
	p := c.plan
	if p.Fleet.Agents == "" {
		return
	}
	if p.Processes != 1 && p.Processes != p.Fleet.Count {
		c.mistake("processes", "%d: with --agents each agent has one worker process: leave one of the two out",
			p.Processes)
	}
	if p.Fleet.Count > p.Workload.Workers {
		c.mistake("agents", ": %d of them for %d workers: --workers %d gives each at least one", p.Fleet.Count,
			p.Workload.Workers, p.Fleet.Count)
	}
	p.Processes = p.Fleet.Count
	for _, lock := range p.Locks {
		if lock.Program != nil {
			c.mistake("lock", "exec: agents start no programs of others: use --processes")
		}
	}
	if p.Fleet.Local {
		return
	}
	if !p.Attach.Asked() {
		c.mistake("agents",
			"on other machines do not reach servers that this one starts on its loopback: name servers that all of them reach, with --addr")
	}
	if p.Counter.Name == workload.RedisCounter.Name {
		p.Counter, _ = workload.FindCounter(fleetCounter)
		c.counted = "on the servers of the lock"
	}
	if p.Counter.Place != workload.OnTopology {
		c.mistake("counter", "%s is on this machine, and agents are on others: use %s", p.Counter.Name, fleetCounter)
	}
}
