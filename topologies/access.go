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
	Engine   string   `json:"engine,omitempty"` // name of the database engine if the servers are not Redis
	Addrs    []string `json:"addrs"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password"`
	// path of a file that gets the primary's address when an operator moves the primary
	Moved  string `json:"moved,omitempty"`
	Copies int    `json:"copies,omitempty"` // number of replicas of each primary
	// prefix of the clients' source addresses; empty if clients are not proxied
	Sources string `json:"sources,omitempty"`

	Foreign  bool      `json:"foreign,omitempty"` // the suite did not start the servers: it was given their addresses
	Sentinel [2]string `json:"sentinel,omitzero"` // login of sentinels
	DB       int       `json:"db,omitempty"`
	// announced address -> address to dial from here; a missing entry means: dial the announced address
	Map   map[string]string `json:"map,omitempty"`
	Links map[string]string `json:"links,omitempty"` // address of a node -> address of the proxy in front of it
	TLS   *TLS              `json:"tls,omitempty"`
}

// Access returns what a client needs to reach the site.
func (s *Site) Access() Access {
	a := s.access
	a.Name, a.Master, a.Cluster, a.Addrs, a.Copies = s.Name, s.Master, s.Cluster, s.Addrs(), s.Copies()
	return a
}

// Site makes a Site from the data in a worker process. It serves clients only, so it has no nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, access: a}
	if a.TLS != nil {
		s.tls, _ = a.TLS.config() // the error is ignored: the certificates were checked before the run
	}
	for _, addr := range a.Addrs {
		s.seeds = append(s.seeds, &Node{front: addr})
	}
	return s
}

// Spawn starts a worker process. It ends when the topology is closed, or when the suite is killed.
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
