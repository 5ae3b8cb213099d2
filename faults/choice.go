package faults

import "hammerlock/topologies"

// Refused says why a fault cannot be injected into a topology that is up with those options; empty if it can.
func (f Fault) Refused(s Scene, o topologies.Options) string {
	switch {
	case possible(f, "", s) != "":
		return possible(f, "", s)
	case f.Needs.Links && !o.Links:
		return "needs links, which stand only if the plan has a fault of links"
	case f.Needs.Clock && !o.Clock:
		return "needs clocks that can be set, as with a planned fault of clocks"
	case f.Needs.Durable && o.Durable == "":
		return "needs a log on disk, as with a planned power-loss"
	}
	return ""
}
