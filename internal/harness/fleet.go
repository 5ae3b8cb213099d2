package harness

import (
	"cmp"
	"time"

	"hammerlock/internal/crew"
	"hammerlock/workload"
)

// Fleet describes the agents that run the workers, if there are any. An agent is a process of the suite, usually on
// another machine.
type Fleet struct {
	Agents string     // value of --agents; empty = the workers run on this machine
	Crew   crew.Maker // makes the Crew of a run; nil = there are no agents
	Count  int        // number of agents; 0 = none
	Local  bool       // all agents are on this machine
	// AllowLost lets a run be judged even if agents were lost, by the operations of the remaining agents.
	AllowLost bool
	Silence   time.Duration // an agent that sends nothing for this long is lost
}

// fleetCounter is the default counter if workers run on other machines. It keeps page views on the servers of the
// lock.
const fleetCounter = "topology"

// processes returns the number of worker processes. Each agent has one; without agents, it is the number asked for.
func (f *Fleet) processes(asked int) int {
	return cmp.Or(f.Count, asked)
}

// The method judged returns the number of processes that a judge distinguishes by their clocks. With agents, the
// suite itself counts as number 0, and the agents are numbered from 1.
func (f *Fleet) judged(processes int) int {
	if f.Count > 0 {
		return f.Count + 1
	}
	return processes
}

// fleet reports settings that are not possible together with agents.
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
			"on other machines do not reach servers that this one starts on its loopback: "+
				"name servers that all of them reach, with --addr")
	}
	if p.Counter.Name == workload.RedisCounter.Name {
		p.Counter, _ = workload.FindCounter(fleetCounter)
		c.counted = "on the servers of the lock"
	}
	if p.Counter.Place != workload.OnTopology {
		c.mistake("counter", "%s is on this machine, and agents are on others: use %s", p.Counter.Name, fleetCounter)
	}
}
