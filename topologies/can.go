package topologies

// Can lists what a deployment permits and supports. Each kind of deployment fills it in, so that other packages need
// not ask whether servers were started or attached, which engine they run, or whether they live in the suite's process.
type Can struct {
	Own     bool     // the suite started the servers, so it may stop and break them
	Allowed []string // keys of Destructive that the user has allowed on attached servers
	Prefix  string   // prefix of all keys on attached servers; empty if the suite started the servers
	Engine  string   // name of a database engine other than Redis; empty = Redis
	Count   bool     // the servers can count the commands that a lock sends
	Keep    bool     // a server that is killed keeps all acknowledged writes
	Expire  bool     // the session of a lock client can be expired
	Find    bool     // servers or sentinels tell every client the address of the new primary after a failover
	// Lock means that the service under test does its own locking, so that its waiters and holders are invisible.
	Lock bool
}

// Ask tells whether the servers understand Redis commands.
func (c Can) Ask() bool { return c.Engine == "" }

// FailsOver tells whether the lock stays available without an operator when a server dies.
func (s Spec) FailsOver() bool { return s.Sites > 2 || s.Copies > 0 && s.Can().Find }

// WhenAServerDies returns two table cells: whether granted locks survive the death of a server, and how long the lock
// is unavailable, if that is known without a measurement.
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

// Can returns what deployments of this Spec permit and support.
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
