package harness

import (
	"context"
	"errors"
	"fmt"
	"os"

	"hammerlock/topologies"
)

// Warm keeps deployments up between runs, so that runs that are compared have the same servers under them and none
// waits for a start. What was broken once is not kept. The zero value is ready; it is used by one goroutine.
type Warm struct {
	up map[string]*topologies.Topology
}

// lend gives a stage the deployment that it asks for, if there is one.
func (w *Warm) lend(s *stage) {
	if w == nil {
		return
	}
	key := s.deployment()
	s.topology = w.up[key]
	delete(w.up, key)
}

// takeBack keeps a stage's deployment, emptied. One that is in doubt is left to the stage, which closes it.
func (w *Warm) takeBack(ctx context.Context, s *stage, sound bool) {
	if w == nil || !sound || s.topology == nil || len(s.combo.Steps) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	if s.crew == nil || errors.Join(s.crew.Close(), s.store.remove(), empty(ctx, s.topology)) != nil {
		return
	}
	if w.up == nil {
		w.up = map[string]*topologies.Topology{}
	}
	s.crew = nil
	w.up[s.deployment()], s.topology = s.topology, nil
}

// remove closes the store and takes its file away, which may lie where the deployment lives on.
func (s *store) remove() error {
	err := s.close()
	if file := s.orders.File; file != "" {
		for _, path := range []string{file, file + "-wal", file + "-shm"} {
			if gone := os.Remove(path); !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}
	*s = store{}
	return err
}

// empty removes every key from every primary. The servers are the suite's own.
func empty(ctx context.Context, t *topologies.Topology) error {
	for _, n := range t.Nodes {
		if n.Role == topologies.Sentinel {
			continue
		}
		if info, err := n.Info(ctx, "replication"); err != nil {
			return err
		} else if info["role"] == "slave" {
			continue
		}
		if err := n.Do(ctx, "FLUSHALL").Err(); err != nil {
			return fmt.Errorf("empty %s: %w", n.Name, err)
		}
	}
	return nil
}

// deployment names what a stage's topology must be like.
func (s *stage) deployment() string {
	p := &s.job.Plan
	return fmt.Sprint(s.combo.Topology.Name, s.breakable(topologies.Options{Server: s.job.server, Profile: p.Profile}))
}

// Close ends what is still up.
func (w *Warm) Close() error {
	var errs []error
	for _, t := range w.up {
		errs = append(errs, t.Close())
	}
	w.up = nil
	return errors.Join(errs...)
}
