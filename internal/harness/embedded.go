package harness

import (
	"fmt"
	"os"

	"hammerlock/internal/human"
	"hammerlock/topologies"
)

// label returns a warning for results if measurements with the given server are meaningless; empty otherwise.
func label(server topologies.Server) string {
	if server.Embedded() {
		return "embedded: functional only; its latencies and costs say nothing about Redis"
	}
	return ""
}

// place checks that servers can create their files in the directory for temporary files.
func (c *check) place(server topologies.Server) {
	if server.Embedded() {
		return
	}
	if err := human.Writable(os.TempDir()); err != nil {
		c.problems = append(c.problems,
			fmt.Sprintf("servers need a place for their files: %s: %v; let TMPDIR name a directory "+
				"that can be written to",
				os.TempDir(), err))
	}
}

// The method embedded drops scenarios with several worker processes if the servers are in memory, which only this
// process can reach. It also reports other settings that such servers do not support.
func (c *check) embedded(server topologies.Server, all []Combination) (served []Combination) {
	if !server.Embedded() {
		return all
	}
	if c.plan.Durable != "" {
		c.mistake("redis-server", "embedded keeps no log: --aof needs a server")
	}
	if c.plan.Processes > 1 {
		c.mistake("redis-server", "embedded lives in the suite: it serves one process, not --processes %d",
			c.plan.Processes)
	}
	for _, t := range c.plan.Topologies {
		if !t.Embeddable() {
			c.mistake("redis-server", "embedded serves single and redlock, not %s", t.Name)
		}
	}
	for _, x := range all {
		if x.Scenario.Processes > 1 {
			c.not = append(c.not, x.notRun("a server that lives in the suite serves one process"))
		} else {
			served = append(served, x)
		}
	}
	return served
}
