package checker

import "hammerlock/history"

// Unrecorded says that a lock renews its leases without a record of that, and what to do. It is empty if the history
// has an extension, or if no hold shows that one is missing: a hold whose release succeeded after the end of its lease.
func (c *Case) Unrecorded() string {
	if !c.Claims.Renews {
		return ""
	}
	for i := range c.Ops {
		if c.Ops[i].Kind == history.Extend {
			return ""
		}
	}
	r := ruler{c: c}
	for i := range c.holds {
		h := &c.holds[i]
		if h.Release < 0 {
			continue
		}
		if op := &c.Ops[h.Release]; op.Outcome == history.OK && op.Call > r.latest(h) {
			return "the lock claims Renews but recorded no extension in Env.Renewals, so the ends of its leases are " +
				"unknown: see docs/OWN.md"
		}
	}
	return ""
}

// needsExtensions lists the checkers that would accuse a lock if its extensions are not recorded.
var needsExtensions = []string{Activity.Name, leaseValidity.Name, release.Name, liveness.Name}

// endsOfLeases lists the causes that missing extensions can explain. Any other failure stands.
var endsOfLeases = []string{history.FalseRelease, history.TTLTooLong, history.RenewalFailure}
