package checker

import "hammerlock/history"

// Unrecorded returns a text if a lock renews its leases without recording that, with what to do; otherwise an empty
// text. It needs two signs: no extension is recorded, and a release succeeded after the end of its hold's lease.
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

// needsExtensions lists the checkers that may accuse a lock wrongly if its extensions are not recorded.
var needsExtensions = []string{Activity.Name, leaseValidity.Name, release.Name, liveness.Name}

// endsOfLeases lists the causes that missing extensions can explain. Any other failure stands.
var endsOfLeases = []string{history.FalseRelease, history.TTLTooLong, history.RenewalFailure}
