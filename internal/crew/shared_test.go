package crew

import (
	"context"
	"sync/atomic"
	"testing"

	"hammerlock/locks"
)

// closing counts the calls of Close.
type closing struct {
	locks.Lock
	closed *atomic.Int32
}

func (c *closing) Close() error {
	c.closed.Add(1)
	return c.Lock.Close()
}

// TestWorkersShareOneObject: if the load says so, workers share one lock object. It is opened and closed once.
func TestWorkersShareOneObject(t *testing.T) {
	t.Parallel()
	for shared, want := range map[bool]int32{false: 6, true: 1} {
		o, _ := deployment(t)
		var opened, closed atomic.Int32
		open := o.Lock.Open
		o.Lock.Open = func(e locks.Env) (locks.Lock, error) {
			opened.Add(1)
			l, err := open(e)
			return &closing{l, &closed}, err
		}
		o.Shape.Shared, o.Shape.Visits = shared, 3
		c, err := Local(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Begin(nil); err != nil {
			t.Fatal(err)
		}
		r, err := c.Run(context.WithoutCancel(t.Context()), t.Context())
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || r.Begun != 18 || opened.Load() != want || closed.Load() != want {
			t.Errorf("shared %v: %d visits, %d objects opened, %d closed: %v", shared, r.Begun, opened.Load(),
				closed.Load(), err)
		}
	}
}
