package topologies

import (
	"errors"
	"os/exec"
)

// Access is what a client needs to reach a site. It is plain data, so that it can be sent to worker processes.
type Access struct {
	Name     string   `json:"name"`
	Master   string   `json:"master,omitempty"`
	Cluster  bool     `json:"cluster,omitempty"`
	Engine   string   `json:"engine,omitempty"` // of servers that are not Redis
	Addrs    []string `json:"addrs"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password"`
	Moved    string   `json:"moved,omitempty"`   // a file that names the primary's address once an operator has moved it
	Copies   int      `json:"copies,omitempty"`  // replicas that each of its primaries has
	Sources  string   `json:"sources,omitempty"` // how the source addresses of clients begin; empty without links

	Foreign  bool              `json:"foreign,omitempty"` // somebody else runs the servers
	Sentinel [2]string         `json:"sentinel,omitzero"` // user and password of sentinels of others
	DB       int               `json:"db,omitempty"`
	Map      map[string]string `json:"map,omitempty"`
	Links    map[string]string `json:"links,omitempty"`
	TLS      *TLS              `json:"tls,omitempty"`
}

// Access returns what a client needs to reach the site.
func (s *Site) Access() Access {
	return Access{Name: s.Name, Master: s.Master, Cluster: s.Cluster, Engine: s.engine, Addrs: s.Addrs(), User: s.user, Password: s.password,
		Moved: s.moved, Sources: s.sources, Copies: s.Copies(), Foreign: s.foreign, Sentinel: [2]string{s.sentinel.user, s.sentinel.password},
		DB: s.db, Map: s.mapped, Links: s.links, TLS: s.secured}
}

// Site is the site for clients in another process: without nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, engine: a.Engine, user: a.User, password: a.Password,
		moved: a.Moved, sources: a.Sources, copies: a.Copies, foreign: a.Foreign, sentinel: Login{a.Sentinel[0], a.Sentinel[1]},
		db: a.DB, mapped: a.Map, links: a.Links, secured: a.TLS}
	if a.TLS != nil {
		s.tls, _ = a.TLS.config() // it was read when the deployment was attached
	}
	for _, addr := range a.Addrs {
		s.seeds = append(s.seeds, &Node{front: addr})
	}
	return s
}

// Spawn starts a process that ends with the topology, whatever happens to the suite: a worker process.
func (t *Topology) Spawn(cmd *exec.Cmd) error {
	if t.spawner == nil {
		return errors.New("worker processes need real servers")
	}
	if err := t.spawner.Start(cmd); err != nil {
		return err
	}
	if t.reaper != nil {
		t.reaper.Watch(cmd.Process.Pid)
	}
	return nil
}
