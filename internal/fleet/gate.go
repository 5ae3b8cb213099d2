package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/workload"
)

// gate stops a worker at a point of its visit. The worker may be on any agent.
type gate struct {
	r    *run
	next int           // number of the last catch
	turn chan struct{} // held by the catch in progress
	all  sync.WaitGroup
}

// catchTurn is the longest time for which an agent waits for a worker before it answers that there is none yet.
const catchTurn = 50 * time.Millisecond

// Catch implements crew.Catcher. Every agent stops the next worker at the point. The first agent with such a worker
// wins; the other agents let their workers continue.
func (g *gate) Catch(ctx context.Context, p workload.Point, key int32) (*workload.Caught, error) {
	g.turn <- struct{}{}
	g.next++
	o := order{Do: doCatch, ID: g.next, Point: p, Key: key}
	found := make(chan *workload.Caught, 1)
	var won atomic.Bool
	asking, end := context.WithCancel(ctx)
	g.all.Go(func() {
		defer func() { <-g.turn }()
		defer end()
		_ = g.r.each(func(a *agent) error { // an error does not matter: an agent that does not answer is lost
			if c := a.catch(asking, o); c != nil && !won.Swap(true) {
				found <- c
				end()
				return nil
			}
			return a.tell(order{Do: doForget, ID: o.ID})
		})
		close(found)
	})
	if c := <-found; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w %s: %w", workload.ErrNobody, p, context.Cause(asking))
}

// catch asks an agent repeatedly until the agent has stopped a worker. It returns nil if ctx ends before that, or if
// the agent does not answer.
func (a *agent) catch(ctx context.Context, o order) *workload.Caught {
	for ctx.Err() == nil {
		got, err := a.order(o, orderTimeout)
		if err != nil {
			return nil
		}
		if got.Caught {
			return &workload.Caught{Worker: got.Worker, Key: got.Key, Hold: got.Hold, Elsewhere: func(die bool) {
				// an agent that does not answer is lost
				_, _ = a.order(order{Do: doFree, ID: o.ID, Die: die}, max(orderTimeout, a.r.f.o.Timeout))
			}}
		}
	}
	return nil
}
