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
	Addrs    []string `json:"addrs"`
	Password string   `json:"password"`
	Moved    string   `json:"moved,omitempty"`   // a file that names the primary's address once an operator has moved it
	Copies   int      `json:"copies,omitempty"`  // replicas that each of its primaries has
	Sources  string   `json:"sources,omitempty"` // how the source addresses of clients begin; empty without links
}

// Access returns what a client needs to reach the site.
func (s *Site) Access() Access {
	return Access{Name: s.Name, Master: s.Master, Cluster: s.Cluster, Addrs: s.Addrs(), Password: s.password,
		Moved: s.moved, Sources: s.sources, Copies: s.Copies()}
}

// Site is the site for clients in another process: without nodes.
func (a Access) Site() *Site {
	s := &Site{Name: a.Name, Master: a.Master, Cluster: a.Cluster, password: a.Password,
		moved: a.Moved, sources: a.Sources, copies: a.Copies}
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
	cmd.SysProcAttr = childAttr()
	if err := t.spawner.start(cmd); err != nil {
		return err
	}
	t.reaper.pid(cmd.Process.Pid)
	return nil
}
