package explore

import (
	"context"
	"sync"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/workload"
)

// views is the page counter that all clients share. If the lock claims fences, the counter rejects each load and each
// store with a smaller fencing token than it has seen. The check at loads is needed: otherwise an old holder could
// still store after the new holder's load, and the new holder's store would overwrite that store.
type views struct {
	fenced bool

	mu     sync.Mutex
	counts map[string]workload.Count // by page
	fence  int64                     // greatest fencing token so far
}

// counter is one client's access to the views. Other clients may act between load and store.
type counter struct {
	*views
	w      *world
	client int
	fence  int64 // fencing token of the client's hold
	reads  bool  // the hold is a reader's
	looked bool  // the reader has loaded once
}

// Load loads the views. With fencing, no other client can act between the grant and the load. Until the load, the
// counter does not know the new token, so it would accept older ones.
func (c *counter) Load(_ context.Context, page string) (workload.Count, error) {
	var n workload.Count
	err := locks.ErrFenced
	read := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.stale() {
			n, err = c.counts[page], nil
		}
	}
	if c.fenced {
		read()
	} else if !c.w.step(c.client, c.look(), read) {
		return n, locks.ErrCrashed
	}
	return n, err
}

// look returns the kind of the next load: the second load of a reader is a reload.
func (c *counter) look() kind {
	if c.reads && c.looked {
		return reload
	}
	c.looked = true
	return load
}

// Add is not supported: baselines and semaphores, which need it, are not explored.
func (c *counter) Add(context.Context, string, history.ID) (workload.Count, error) {
	return workload.Count{}, locks.ErrServer
}

func (c *counter) Store(_ context.Context, page string, n workload.Count) error {
	err := locks.ErrFenced
	if !c.w.step(c.client, store, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.stale() {
			c.counts[page], err = n, nil
		}
	}) {
		return locks.ErrCrashed
	}
	return err
}

// stale tells whether the counter has seen a greater fencing token than the client's.
func (c *counter) stale() bool {
	if !c.fenced {
		return false
	}
	stale := c.fence < c.views.fence
	c.views.fence = max(c.views.fence, c.fence)
	return stale
}

func (c *counter) Close() error { return nil }
