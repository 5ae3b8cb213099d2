package fleet

import (
	"context"
	"time"

	"hammerlock/workload"
)

// catch is an agent's state of stopping a worker at a point for a fault.
type catch struct {
	cancel context.CancelFunc
	done   chan struct{}
	caught *workload.Caught // valid after done; nil = no worker was caught
}

// catch waits a while for the worker; the coordinator asks again.
func (t *task) catch(ctx context.Context, o *order) (answer, error) {
	c := t.want(ctx, o)
	if c == nil {
		pause(ctx, catchTurn)
		return answer{}, nil
	}
	select {
	case <-c.done:
	case <-time.After(catchTurn):
		return answer{}, nil
	}
	if c.caught == nil {
		return answer{}, workload.ErrNobody
	}
	return answer{Caught: true, Worker: c.caught.Worker, Key: c.caught.Key, Hold: c.caught.Hold}, nil
}

// want begins to wait for a worker, unless it does so already. nil = the run has not begun, or is over.
func (t *task) want(ctx context.Context, o *order) *catch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == nil || t.over {
		return nil
	}
	c := t.catches[o.ID]
	if c == nil {
		ctx, cancel := context.WithCancel(ctx)
		c = &catch{cancel: cancel, done: make(chan struct{})}
		t.catches[o.ID] = c
		gate := t.session.Gate
		t.all.Go(func() {
			defer close(c.done)
			c.caught, _ = gate.Catch(ctx, o.Point, o.Key) // in case of an error, no worker was caught
		})
	}
	return c
}

// free lets a worker that was caught go on or die, or gives up waiting for one.
func (t *task) free(o *order) {
	t.mu.Lock()
	c := t.catches[o.ID]
	t.mu.Unlock()
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
	switch {
	case c.caught == nil:
	case o.Die:
		c.caught.Die()
	default:
		c.caught.Go()
	}
}
