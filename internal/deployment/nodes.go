package deployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hammerlock/internal/measure"
	"hammerlock/topologies"
	"hammerlock/topologies/links"
)

// noAnswer is the state of a node whose process runs, but does not answer.
const noAnswer = "no answer"

// askTimeout limits the time in which a node reports its state.
const askTimeout = 350 * time.Millisecond

// Survey asks all nodes of a topology for their states, each time that Look is called. It is not safe for concurrent
// use.
type Survey struct {
	topology *topologies.Topology
	heard    []measure.NodeState // indexed by node: its last answer
}

func (d *Deployment) Survey() *Survey {
	return &Survey{topology: d.Topology, heard: make([]measure.NodeState, len(d.Topology.Nodes))}
}

// reply is what a node reports about itself. Empty or 0 means unknown.
type reply struct {
	state   measure.NodeState
	offset  int64
	primary string
}

// Look asks all nodes in parallel. If a node fails to answer once, its last state is returned again.
func (s *Survey) Look(ctx context.Context) []measure.NodeState {
	all := s.topology.Nodes
	replies := make([]reply, len(all))
	var asks sync.WaitGroup
	for i, n := range all {
		asks.Go(func() { replies[i] = ask(ctx, n) })
	}
	asks.Wait()
	states := make([]measure.NodeState, len(all))
	for i, r := range replies {
		states[i] = r.state
		if late := r.state.State == noAnswer; late && s.heard[i].Name != "" {
			states[i], s.heard[i] = s.heard[i], measure.NodeState{}
		} else if !late {
			s.heard[i] = r.state
		}
	}
	for i, r := range replies {
		of := slices.IndexFunc(all, func(n *topologies.Node) bool { return n.Addr() == r.primary })
		if r.primary == "" || of < 0 {
			continue
		}
		states[i].Of, states[i].Lag = all[of].Name, -1
		if replies[of].offset > 0 && r.offset > 0 {
			states[i].Lag = max(replies[of].offset-r.offset, 0)
		}
	}
	for _, p := range s.topology.Programs() {
		states = append(states, measure.NodeState{Name: p.Name, Role: "program", Made: "program",
			State: p.State().String(), Lag: -1})
	}
	return states
}

func ask(ctx context.Context, n *topologies.Node) reply {
	s := measure.NodeState{Name: n.Name, Role: "?", Made: string(n.Role), State: n.State().String(), Lag: -1}
	if n.State() != topologies.Up {
		return reply{state: s}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := n.Info(ctx, "replication", "clients")
	if err != nil {
		s.State = noAnswer
		return reply{state: s}
	}
	s.Clients, _ = strconv.ParseInt(info["connected_clients"], 10, 64)
	if n.Role == topologies.Sentinel {
		s.Role = string(topologies.Sentinel)
		return reply{state: s}
	}
	if info["role"] == "slave" {
		s.Role, s.Linked = string(topologies.Replica), info["master_link_status"] == "up"
		offset, _ := strconv.ParseInt(info["slave_repl_offset"], 10, 64)
		return reply{s, offset, info["master_host"] + ":" + info["master_port"]}
	}
	s.Role = string(topologies.Primary)
	offset, _ := strconv.ParseInt(info["master_repl_offset"], 10, 64)
	return reply{s, offset, ""}
}

// Cuts describes the rules of the proxies that are in force, such as a cut connection.
func (d *Deployment) Cuts() (list []string) {
	names := func(all []links.Party) string {
		words := make([]string, len(all))
		for i, p := range all {
			words[i] = string(p)
		}
		return strings.Join(words, ",")
	}
	for _, r := range d.Topology.Network().Rules() {
		arrow := "<->"
		if r.OneWay {
			arrow = "->"
		}
		list = append(list, fmt.Sprintf("%s %s%s%s", r.Effect, names(r.From), arrow, names(r.To)))
	}
	return list
}
