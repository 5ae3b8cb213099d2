package results

import (
	"fmt"
	"strings"
	"time"

	"hammerlock/history"
	"hammerlock/internal/human"
)

// Fleet describes the machines on which a run's workers were, and how exactly their clocks agreed.
type Fleet struct {
	Agents []Agent `json:"agents"`
	// Slack is the largest possible difference between any two clocks, the coordinator's included. Judges allow for
	// it.
	Slack int64 `json:"slack_ns"`
}

// Agent is the process of the suite on a machine with workers.
type Agent struct {
	Name    string `json:"name"`
	Host    string `json:"host"`
	CPUs    int    `json:"cpus"`
	Workers int    `json:"workers"`
	Frames  int64  `json:"frames"`     // number of messages in which its history was sent
	Ops     int64  `json:"operations"` // number of operations in these messages
	// largest number of bytes of history that the agent had to keep, because the coordinator had not stored it yet
	Spool     int64  `json:"spool_bytes"`
	SameClock bool   `json:"same_clock"` // the agent runs on the coordinator's machine
	Machine   int    `json:"machine"`    // agents with the same number share a clock; 0 = the coordinator's clock
	Exchanges int    `json:"exchanges"`  // number of messages by which its clock was compared
	Doubt     int64  `json:"doubt_ns"`   // largest possible error of its clock during the run
	Own       int64  `json:"own_ns"`     // part of Doubt that lies between the agent and the clock of its machine
	Lost      string `json:"lost,omitempty"`
}

// LiveAgent is the state of an agent during a run. Spool is then the current number of bytes, not the largest.
type LiveAgent struct {
	Agent
	Rate float64       // operations per second, over the last seconds
	UpTo time.Duration // the coordinator has the agent's history up to this time
}

// All lists the agents; nil if f is nil.
func (f *Fleet) All() []Agent {
	if f == nil {
		return nil
	}
	return f.Agents
}

// Text describes the agents and how well their clocks agree; empty if f is nil.
func (f *Fleet) Text() string {
	if f == nil {
		return ""
	}
	names := human.Names(f.Agents, func(a Agent) string {
		return fmt.Sprintf("%s on %s (%s)", a.Name, a.Host, human.Quantity(a.CPUs, "CPU"))
	})
	return strings.Join(names, ", ") + "; " + f.clocks()
}

// clocks describes how well the clocks agree: for the worst pair of agents, and for agents on one machine.
func (f *Fleet) clocks() string {
	var apart, together int64
	var worst [2]*Agent
	for i := range f.Agents {
		if f.Agents[i].Doubt >= int64(history.MaxDoubt) {
			return fmt.Sprintf("the clock of %s contradicts itself, nothing is known of it", f.Agents[i].Name)
		}
		for k := range i {
			a, b := &f.Agents[k], &f.Agents[i]
			if a.Machine == b.Machine {
				together = max(together, a.Own+b.Own)
			} else if worst[0] == nil || a.Doubt+b.Doubt > apart {
				apart, worst = a.Doubt+b.Doubt, [2]*Agent{a, b}
			}
		}
	}
	if worst[0] == nil {
		how := "one machine"
		if a := f.Agents; len(a) > 0 && !a[0].SameClock {
			how = "with the coordinator's, " + exchanged(a[0].Exchanges)
		}
		return fmt.Sprintf("clocks agree within %s (%s)", human.Duration(time.Duration(f.Slack)), how)
	}
	text := fmt.Sprintf("clocks of %s and %s agree within %s (%s)", worst[0].Name, worst[1].Name,
		human.Duration(time.Duration(apart)),
		exchanged(worst[0].Exchanges+worst[1].Exchanges))
	if len(f.Agents) > 2 {
		text += ", of any others within that"
	}
	if together > 0 {
		text += fmt.Sprintf(", of one machine within %s", human.Duration(time.Duration(together)))
	}
	return text
}

func exchanged(n int) string {
	return human.Quantity(n, "exchange") + ", worst over the run, drift of at most 500 ppm assumed"
}

// Text describes where an agent ran, what it did and how it ended.
func (a *Agent) Text() string {
	text := fmt.Sprintf("%s, %s, %s, %s in %s, at most %d kB not written yet, clock within %s", a.Host,
		human.Quantity(a.CPUs, "CPU"),
		human.Quantity(a.Workers, "worker"), human.Quantity(a.Ops, "operation"), human.Quantity(a.Frames, "frame"),
		a.Spool/1000,
		human.Duration(time.Duration(a.Doubt)))
	if a.Lost != "" {
		text += "; it " + a.Lost
	}
	return text
}
