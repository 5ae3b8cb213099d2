package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hammerlock/workload"
)

// gate stops a worker at a point, on the agent that has one there first.
type gate struct {
	r    *run
	next int           // number of the last catch
	turn chan struct{} // held by one catch at a time
	all  sync.WaitGroup
}

// catchTurn is how long an agent waits for a worker before it answers that there is none yet, and is asked again.
const catchTurn = 50 * time.Millisecond

// Catch implements crew.Catcher. Every agent stops the next worker at the point. The first agent that has one wins, and
// the others let theirs go on.
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
		_ = g.r.each(func(a *agent) error { // the error is ignored: an agent that does not answer is lost
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

// catch asks an agent until it has stopped a worker, or until none is needed any more.
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
