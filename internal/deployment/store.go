package deployment

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/crew"
	"hammerlock/topologies"
	"hammerlock/workload"
)

// counterFile is the name of the file with the page views, in the directory of the deployment.
const counterFile = "counter.sqlite"

// store has the page views of a run, which a counter stores: on a server, in a file, or in memory.
type store struct {
	spec    workload.CounterSpec
	counter workload.Counter // used by the suite itself
	access  crew.Counter     // tells workers how to open the counter

	own    *topologies.Topology // servers for the page views only; nil = no such servers
	client redis.UniversalClient
	site   *topologies.Site // the site of client
	dir    string           // directory to delete at the end; empty = none
}

// openStore opens the counter of page views. It does so before the workers open it, so that they find it complete.
func (d *Deployment) openStore(ctx context.Context) (err error) {
	s := &d.store
	s.spec = d.spec.Counter
	s.access.Spec = s.spec
	switch s.spec.Place {
	case workload.OfService:
		return d.openService(ctx)
	case workload.OwnServer:
		server := s.spec.Server
		if server.Name == "" {
			server, _ = topologies.Find("single")
		}
		if s.own, err = server.Up(ctx, topologies.Options{Server: d.spec.Options.Server,
			Profile: d.spec.Options.Profile}); err != nil {
			return err
		}
		s.reach(s.own.Sites[0])
	case workload.OnTopology:
		s.reach(d.Topology.Sites[0])
	case workload.InFile:
		dir := d.Topology.Dir()
		if dir == "" {
			if dir, err = os.MkdirTemp("", "hammerlock-"); err != nil {
				return err
			}
			s.dir = dir
		}
		s.access.File = filepath.Join(dir, counterFile)
	}
	s.counter, err = s.spec.Open(workload.CounterEnv{Client: s.client, Site: s.site, File: s.access.File})
	return err
}

func (s *store) reach(site *topologies.Site) {
	access := site.Access()
	s.site, s.access.Access, s.client = site, &access, site.Client(topologies.ClientOptions{})
}

func (s *store) close() error {
	var errs []error
	if s.counter != nil {
		errs = append(errs, s.counter.Close())
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.own != nil {
		errs = append(errs, s.own.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// remove closes the store, and deletes its file. The directory is not deleted, because the next run may use it.
func (s *store) remove() error {
	err := s.close()
	if file := s.access.File; file != "" {
		for _, path := range []string{file, file + "-wal", file + "-shm"} {
			if gone := os.Remove(path); !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	*s = store{}
	return err
}
