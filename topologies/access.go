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
	// a file that names the primary's address once an operator has moved it
	Moved   string `json:"moved,omitempty"`
	Copies  int    `json:"copies,omitempty"`  // replicas that each of its primaries has
	Sources string `json:"sources,omitempty"` // how the source addresses of clients begin; empty without links

	Foreign  bool      `json:"foreign,omitempty"` // others run the servers
	Sentinel [2]string `json:"sentinel,omitzero"` // login of sentinels
	DB       int       `json:"db,omitempty"`
	// where announced addresses are from here; those that are missing are as announced
	Map   map[string]string `json:"map,omitempty"`
	Links map[string]string `json:"links,omitempty"` // the links in front of addresses
	TLS   *TLS              `json:"tls,omitempty"`
}

// Access returns what a client needs to reach the site.
func (s *Site) Access() Access {
	a := s.access
	a.Name, a.Master, a.Cluster, a.Addrs, a.Copies = s.Name, s.Master, s.Cluster, s.Addrs(), s.Copies()
	return a
}

// Site is the site for clients in another process: without nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, access: a}
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
