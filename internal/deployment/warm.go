package deployment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hammerlock/topologies"
)

// Warm keeps topologies up between runs, so that runs that are compared have the same servers under them and none
// waits for a start. The zero value is ready, a nil one keeps nothing, and any goroutine may use it.
type Warm struct {
	one sync.Mutex
	up  map[string][]*topologies.Topology
}

// take returns servers that are up as a deployment asks for, and keeps them no longer; nil if there are none.
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

// Up brings a deployment up, on servers that are up already if there are some as it asks for.
func (w *Warm) Up(ctx context.Context, s Spec) (*Deployment, error) {
	if w == nil {
		return s.Up(ctx)
	}
	t := w.take(s.key())
	if t == nil {
		return s.Up(ctx)
	}
	// Between two runs nobody watches: on a busy machine servers may just be promoting another one.
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

// settleTimeout bounds how long servers may need to be as good as new, before others take their place.
const settleTimeout = 5 * time.Second

// emptyTimeout bounds how long it may take to empty the servers for the next run.
const emptyTimeout = 10 * time.Second

// Keep takes a deployment down but for its servers, which it empties for the next run. A deployment that cannot be
// emptied is not kept.
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

// Close takes down what is still up.
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

// key tells apart the topologies that a deployment cannot share.
func (s Spec) key() string {
	s.Options.Tell = nil
	return fmt.Sprint(s.Topology.Name, s.Topology.Sites, s.Options)
}
