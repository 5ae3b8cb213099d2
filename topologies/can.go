package topologies

// Can lists what a deployment permits and supports. So other packages need not ask whether the suite started the
// servers, or which engine they run.
type Can struct {
	Own     bool     // the suite started the servers, so it may stop and break them
	Allowed []string // keys of Destructive that the user allows on attached servers
	Prefix  string   // prefix of all keys on attached servers; empty if the suite started the servers
	Engine  string   // name of the database engine; empty = Redis
	Count   bool     // the servers can count the commands that a lock sends
	Keep    bool     // a killed server keeps all acknowledged writes
	Expire  bool     // the suite can expire the session of a lock client
	Find    bool     // after a failover, servers or sentinels tell every client the address of the new primary
	// Lock means that the service under test does its own locking. Its waiters and holders are invisible to the
	// suite.
	Lock bool
}

func (c Can) Ask() bool { return c.Engine == "" }

// FailsOver tells whether the lock remains available without an operator when a server dies.
func (s Spec) FailsOver() bool { return s.Sites > 2 || s.Copies > 0 && s.Can().Find }

// WhenAServerDies returns two table cells about the death of a server: whether granted locks survive it, and how long
// the lock is unavailable. The second is empty if only a measurement can tell.
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
