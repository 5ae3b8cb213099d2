package deployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hammerlock/topologies"
)

// Warm keeps topologies running between runs. So compared runs have the same servers, and no run waits for a start.
// The zero value is ready to use; a nil Warm keeps nothing. It is safe for concurrent use.
type Warm struct {
	one sync.Mutex
	up  map[string][]*topologies.Topology
}

// take removes and returns a topology with the given key; nil if there is none.
func (w *Warm) take(key string) *topologies.Topology {
	w.one.Lock()
	defer w.one.Unlock()
	n := len(w.up[key])
	if n == 0 {
		return nil
	}
	t := w.up[key][n-1]
	w.up[key] = w.up[key][:n-1]
	return t
}

// Up starts a deployment, on kept servers if there are suitable ones.
func (w *Warm) Up(ctx context.Context, s Spec) (*Deployment, error) {
	if w == nil {
		return s.Up(ctx)
	}
	t := w.take(s.key())
	if t == nil {
		return s.Up(ctx)
	}
	// nothing watched the servers between the runs, so on a busy machine a failover may be in progress
	within, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if t.AwaitHealthy(within) != nil {
		if err := t.Close(); err != nil {
			return nil, err
		}
		return s.Up(ctx)
	}
	return s.on(ctx, t)
}

// settleTimeout is the longest time that kept servers may take to become healthy. After that, new ones are started.
const settleTimeout = 5 * time.Second

// emptyTimeout is the time limit for emptying the servers for the next run.
const emptyTimeout = 10 * time.Second

// Keep takes a deployment down, but keeps its servers, which it empties for the next run. If that fails, it takes the
// servers down, too.
func (w *Warm) Keep(ctx context.Context, d *Deployment) error {
	if w == nil {
		return d.Close()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), emptyTimeout)
	defer cancel()
	if err := errors.Join(d.Crew.Close(), d.store.remove()); err != nil {
		return errors.Join(err, d.Topology.Close())
	}
	if d.Topology.Empty(ctx) != nil {
		return d.Topology.Close()
	}
	w.one.Lock()
	defer w.one.Unlock()
	if w.up == nil {
		w.up = map[string][]*topologies.Topology{}
	}
	w.up[d.spec.key()] = append(w.up[d.spec.key()], d.Topology)
	return nil
}

// Close takes down the kept servers.
func (w *Warm) Close() error {
	if w == nil {
		return nil
	}
	w.one.Lock()
	defer w.one.Unlock()
	var errs []error
	for _, kept := range w.up {
		for _, t := range kept {
			errs = append(errs, t.Close())
		}
	}
	w.up = nil
	return errors.Join(errs...)
}

// key returns a text that is equal for topologies with the same settings.
func (s Spec) key() string {
	s.Options.Tell = nil
	return fmt.Sprint(s.Topology.Name, s.Topology.Sites, s.Options)
}
