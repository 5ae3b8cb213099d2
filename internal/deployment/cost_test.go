package deployment

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hammerlock/internal/testbed"
	"hammerlock/topologies"
)

// TestIdleServersCostNothing looks at what servers of each topology execute while only they, sentinels and the suite talk,
// and at what a client's own messages cost there.
func TestIdleServersCostNothing(t *testing.T) {
	for _, spec := range topologies.All {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			top := testbed.Up(t, spec.Name, topologies.Options{})
			d := &Deployment{Topology: top}
			idle := d.since(t, func() {
				for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); {
					for _, n := range top.Nodes {
						_, _ = n.Info(t.Context(), "server")
						_ = n.Do(t.Context(), "GET", "k").Err()
					}
					<-time.After(5 * time.Millisecond)
				}
			})
			if idle < -10 || idle > 10 { // what was just being sent, of thousands
				t.Errorf("idle servers executed %d commands", idle)
			}
			client := top.Sites[0].Client(topologies.ClientOptions{})
			defer client.Close()
			sent := d.since(t, func() {
				for range 100 {
					if err := client.Publish(t.Context(), "news", "x").Err(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if sent < 96 {
				t.Errorf("100 messages cost %d commands", sent)
			}
			heard := client.Subscribe(t.Context(), "news")
			defer heard.Close()
			sent = d.since(t, func() { resubscribe(t, heard, 50) })
			if sent < 75 { // 86 was seen in a cluster beside other tests, and why is not known; if they were not counted, it would be 0
				t.Errorf("50 ends and beginnings of a subscription cost %d commands", sent)
			}
		})
	}
}

// resubscribe ends and begins a subscription so often, and waits until the server has done so.
func resubscribe(t *testing.T, heard *redis.PubSub, times int) {
	t.Helper()
	for range times {
		if err := errors.Join(heard.Unsubscribe(t.Context(), "news"), heard.Subscribe(t.Context(), "news")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := heard.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (d *Deployment) since(t *testing.T, do func()) int64 {
	t.Helper()
	before := d.Cost(context.WithoutCancel(t.Context()))
	do()
	after := d.Cost(context.WithoutCancel(t.Context())).Since(before)
	if !after.Known {
		t.Fatal("the servers did not say")
	}
	return after.Commands
}
