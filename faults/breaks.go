package faults

import "hammerlock/history"

// The assumptions of locks that faults violate.
const (
	losesWrites = "replication is asynchronous: a failover can lose an acknowledged grant"
	losesData   = "the server keeps its keys for as long as the lease"
	lyingClock  = "the server's clock goes as fast as the others'"
	losesHold   = "the connection of a hold lasts as long as the hold"
	slowHolder  = "the holder is done before its lease ends"
)

// Breaks returns the assumption that the fault violates in a scene; empty if a correct lock must survive the fault.
// A session may end with its connection, so each fault that cuts links violates an assumption of such a lock.
func (f Fault) Breaks(s Scene) string {
	e := f.Effect(s)
	why := assumption(e, s)
	if f.breaks != nil {
		why = f.breaks(s)
	}
	if why == "" && s.Session && e.CutsLinks() {
		why = losesHold
	}
	return why
}

// assumption returns the assumption that an effect violates in a scene.
func assumption(e history.Effect, s Scene) string {
	if e.Spares {
		return ""
	}
	if s.Session && e.Loses == history.LosesKeys {
		return losesHold
	}
	return map[history.Loss]string{history.LosesWrites: losesWrites, history.LosesKeys: losesData,
		history.LosesTime: lyingClock}[e.Loses]
}
