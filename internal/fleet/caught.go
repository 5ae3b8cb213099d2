package fleet

import (
	"context"
	"time"

	"hammerlock/workload"
)

// catch is the state of an agent's attempt to stop a worker at a point of its visit.
type catch struct {
	cancel context.CancelFunc
	done   chan struct{}
	caught *workload.Caught // valid after done is closed; nil = no worker was caught
}

// catch waits up to catchTurn until a worker is caught. The coordinator repeats the order until that has happened.
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

// want starts to wait for a worker, unless that wait has started, and returns the state of the wait. It returns nil if
// the run has not begun, or is over.
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
			c.caught, _ = gate.Catch(ctx, o.Point, o.Key) // an error means that no worker was caught
		})
	}
	return c
}

// free lets a caught worker continue or die. If none is caught yet, it ends the wait.
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
