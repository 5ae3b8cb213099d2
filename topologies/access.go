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
	Engine   string   `json:"engine,omitempty"` // the engine's name if the servers are not Redis
	Addrs    []string `json:"addrs"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password"`
	// the file with the primary's address, written when an operator moves the primary
	Moved  string `json:"moved,omitempty"`
	Copies int    `json:"copies,omitempty"` // replicas of each primary
	// the common beginning of the clients' source addresses; empty without links
	Sources string `json:"sources,omitempty"`

	Foreign  bool      `json:"foreign,omitempty"` // the servers are run by others
	Sentinel [2]string `json:"sentinel,omitzero"` // login of sentinels
	DB       int       `json:"db,omitempty"`
	// announced address -> address to dial from here; a missing entry means: dial the announced address
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

// Site makes the site in another process, for clients only: it has no nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, access: a}
	if a.TLS != nil {
		s.tls, _ = a.TLS.config() // TLS was checked when the deployment was attached
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
