package topologies

import (
	"errors"
	"os/exec"
)

// Access is what a client must know of a site. It is plain data, so that worker processes can be told.
type Access struct {
	Name     string   `json:"name"`
	Master   string   `json:"master,omitempty"`
	Cluster  bool     `json:"cluster,omitempty"`
	Addrs    []string `json:"addrs"`
	Password string   `json:"password"`
	Moved    string   `json:"moved,omitempty"`   // a file that names the primary's address once an operator has moved it
	Sources  string   `json:"sources,omitempty"` // how the addresses of clients begin that links tell apart
	Copies   int      `json:"copies,omitempty"`  // replicas that each of its primaries has
}

// Access tells how to reach the site.
func (s *Site) Access() Access {
	return Access{Name: s.Name, Master: s.Master, Cluster: s.Cluster, Addrs: s.Addrs(), Password: s.password,
		Moved: s.moved, Sources: s.sources, Copies: s.Copies()}
}

// Site is the site as clients of another process see it: it has no nodes to be asked for.
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
	if t.nursery == nil {
		return errors.New("worker processes need real servers")
	}
	cmd.SysProcAttr = childAttr()
	if err := t.nursery.start(cmd); err != nil {
		return err
	}
	t.reaper.pid(cmd.Process.Pid)
	return nil
}
