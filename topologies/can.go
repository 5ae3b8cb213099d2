package topologies

// Can lists what a caller may do with a deployment. Each kind of deployment fills it in, so that no other package asks
// whether the servers are the suite's own, which engine they run, or whether they live in the suite's process.
type Can struct {
	Own     bool     // the servers are the suite's own: callers may start, stop and break them
	Allowed []string // destructive commands that servers of others may be sent, as Destructive names them
	Prefix  string   // the prefix of all keys; empty = the servers are the suite's own
	Engine  string   // the engine's name if clients do not speak Redis to it; empty = Redis
	Count   bool     // the servers count the commands of a lock
	Keep    bool     // a server keeps acknowledged writes when it dies
	Expire  bool     // a lock client's session can be ended
	Find    bool     // servers or sentinels tell every client the address of the primary
	// the service under test does its own locking, and shows neither waiters nor holders
	Lock bool
}

// Ask tells whether the servers take Redis commands.
func (c Can) Ask() bool { return c.Engine == "" }

// FailsOver tells whether the deployment goes on, without an operator, when a server dies.
func (s Spec) FailsOver() bool { return s.Sites > 2 || s.Copies > 0 && s.Can().Find }

// WhenAServerDies returns two table cells: whether grants survive a server's death, and for how long the lock is gone
// if that needs no measurement.
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

// Can returns what a caller may do with such a deployment.
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
