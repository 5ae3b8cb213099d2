package topologies

import (
	"errors"
	"os/exec"
)

// Access is the data with which a client connects to a site. It is plain data, so it can be sent to worker processes.
type Access struct {
	Name     string   `json:"name"`
	Master   string   `json:"master,omitempty"`
	Cluster  bool     `json:"cluster,omitempty"`
	Engine   string   `json:"engine,omitempty"` // name of the database engine; empty = Redis
	Addrs    []string `json:"addrs"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password"`
	// file that contains the primary's address after an operator has moved the primary
	Moved  string `json:"moved,omitempty"`
	Copies int    `json:"copies,omitempty"` // number of replicas of each primary
	// prefix of the clients' source addresses; empty = no proxies
	Sources string `json:"sources,omitempty"`

	Foreign  bool      `json:"foreign,omitempty"` // the suite was given running servers and did not start them
	Sentinel [2]string `json:"sentinel,omitzero"` // user and password for the sentinels
	DB       int       `json:"db,omitempty"`
	// announced address -> address to dial; a client dials any other announced address as it is
	Map   map[string]string `json:"map,omitempty"`
	Links map[string]string `json:"links,omitempty"` // address of a node -> address of its proxy
	TLS   *TLS              `json:"tls,omitempty"`
}

func (s *Site) Access() Access {
	a := s.access
	a.Name, a.Master, a.Cluster, a.Addrs, a.Copies = s.Name, s.Master, s.Cluster, s.Addrs(), s.Copies()
	return a
}

// Site makes a Site from the data, in a worker process. It can only make clients: it has no nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, access: a}
	if a.TLS != nil {
		s.tls, _ = a.TLS.config() // the certificates were checked before the run
	}
	for _, addr := range a.Addrs {
		s.seeds = append(s.seeds, &Node{front: addr})
	}
	return s
}

// Spawn starts a worker process. The process ends when the topology is closed, or when the suite is killed.
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
