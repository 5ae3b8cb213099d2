package explore

import (
	"context"
	"sync"

	"hammerlock/history"
	"hammerlock/locks"
	"hammerlock/workload"
)

// views is what all clients count in. If it is fenced it takes note of the tokens of readers, too: a store that does
// not would take the late store of a holder whose successor has read already, and lose the successor's.
type views struct {
	fenced bool

	mu     sync.Mutex
	counts map[string]workload.Count // by page
	fence  int64                     // the greatest that it has seen
}

// counter is the views as one client sees them: others may come between.
type counter struct {
	*views
	w      *world
	client int
	fence  int64 // of the client's hold
	reads  bool  // the hold is a reader's ...
	looked bool  // ... which has read
}

// Load reads the views. No other client comes between a grant and a load that shows its token: until then a fence
// cannot know of it.
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

// look is how a client reads: a reader does so twice.
func (c *counter) look() kind {
	if c.reads && c.looked {
		return reload
	}
	c.looked = true
	return load
}

// Add would count in one step: what does so is no lock, and is not explored.
func (c *counter) Add(context.Context, string, history.ID) (workload.Count, error) {
	return workload.Count{}, locks.ErrServer
}

// Store writes the views.
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

// stale tells whether a greater token was seen than the client's.
func (c *counter) stale() bool {
	if !c.fenced {
		return false
	}
	stale := c.fence < c.views.fence
	c.views.fence = max(c.views.fence, c.fence)
	return stale
}

// Close has nothing to give up.
func (c *counter) Close() error { return nil }
