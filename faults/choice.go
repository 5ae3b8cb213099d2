package faults

import (
	"hammerlock/internal/human"
	"hammerlock/topologies"
)

// Refused returns the reason why a fault cannot be injected into a topology that runs with these options. The
// reason includes the option that would allow the fault. An empty text means that the fault can be injected.
func (f Fault) Refused(s Scene, o topologies.Options) string {
	switch {
	case unavailable(f, "", s) != "":
		return unavailable(f, "", s)
	case f.Needs.Links && !o.Links:
		return "needs links: start with --fault " + f.Name
	case f.Needs.Clock && !o.Clock:
		return "needs clocks that can be set: start with --fault " + f.Name
	case f.Needs.Power && !o.Power:
		return "needs a log on disk that power can lose: start with --fault " + f.Name
	}
	return ""
}

// Targets lists the arguments of a fault that name a target, for a menu; nil = the fault itself chooses its target.
func (f Fault) Targets(t *topologies.Topology) []string {
	if f.targets == nil {
		return nil
	}
	return f.targets(t)
}

func nodeNames(t *topologies.Topology) []string {
	return human.Names(t.Nodes, func(n *topologies.Node) string { return n.Name })
}
