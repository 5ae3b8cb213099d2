package topologies

// Can is what those who use a deployment can do with it. Each kind of deployment answers here: no other package asks
// whether servers are the suite's own, which engine they have, or whether they live in the suite.
type Can struct {
	Own     bool     // start, stop and break the servers: they are the suite's, and work for nothing else
	Allowed []string // where they are not: what may be sent to them all the same, as Destructive names it
	Prefix  string   // begins all keys there; empty = the servers are the suite's
	Engine  string   // which servers that are not Redis clients talk to; empty = they take the commands of Redis
	Count   bool     // tell what a lock has made the servers do
	Keep    bool     // rely, after a server's death, on what it has acknowledged
	Expire  bool     // end the session of a lock's client
	Find    bool     // have the servers, or sentinels, tell every client which the primary is
	// lock by itself: it is a service, which is what is tested, and shows neither who waits nor who has a lock
	Lock bool
}

// Ask tells whether servers can be asked in the commands of Redis.
func (c Can) Ask() bool { return c.Engine == "" }

// FailsOver tells whether the deployment goes on, without an operator, when a server dies.
func (s Spec) FailsOver() bool { return s.Sites > 2 || s.Copies > 0 && s.Can().Find }

// WhenAServerDies says for a table whether the grants of a lock hold then, and for how long the lock is gone where that
// is not a matter of measuring.
func (s Spec) WhenAServerDies() (safe, gone string) {
	switch {
	case s.Sites > 2:
		return "yes", ""
	case s.FailsOver():
		return "no: may lose grants", ""
	case s.Copies > 0:
		return "no: may lose grants", "until promoted"
	default:
		return "no: restarts empty", "until restarted"
	}
}

// Can is what can be done with such a deployment.
func (s Spec) Can() Can {
	c := Can{Own: s.attached == nil, Lock: s.locks}
	if a := s.attached; a != nil {
		c.Allowed, c.Prefix = a.Allow, a.Prefix
	}
	if e := s.engine; e != nil {
		c.Engine, c.Keep, c.Expire = e.Name, e.Keeps, e.Expire != nil
	}
	c.Count, c.Find = c.Own && c.Ask(), c.Engine == "" && !s.byHand
	return c
}
