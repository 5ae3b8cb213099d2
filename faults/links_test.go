package faults

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"hammerlock/history"
	"hammerlock/topologies/links"
)

// TestWhatBreaksConnectionsBlocks: a fault that breaks connections has Blocks set, because a client without a reply
// may retry without delay. A fault that only delays replies does not have it set, because clients wait for the reply.
func TestWhatBreaksConnectionsBlocks(t *testing.T) {
	for _, f := range All {
		e, late := f.Effect(Scene{}), f.Name == delay.Name || f.Name == lateCommand.Name
		if f.Needs.Links && e.Hit(history.Links) && e.Blocks == late {
			t.Errorf("%s: blocks is %v", f.Name, e.Blocks)
		}
	}
}

// TestADelayIsHealedWhenAllHasArrived: the heal of a delay ends the rule immediately, and returns when the last
// delayed message must have arrived. The heal of any other rule returns immediately. A heal with a cancelled
// context does too.
func TestADelayIsHealedWhenAllHasArrived(t *testing.T) {
	const latency, jitter = 20 * time.Millisecond, 300 * time.Millisecond
	for name, tt := range map[string]struct {
		effect links.Effect
		off    bool
		want   time.Duration
	}{
		"delay":            {links.Delay, false, latency + jitter},
		"delay called off": {links.Delay, true, 0},
		"drop":             {links.Drop, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, off := context.WithCancel(t.Context())
			defer off()
			if tt.off {
				off()
			}
			n, parties := &links.Network{}, []links.Party{links.AllClients}
			_, heal, err := onLinks(n, links.Rule{From: parties, To: parties, Effect: tt.effect, Latency: latency,
				Jitter: jitter}, name)
			if err != nil || len(n.Rules()) != 1 {
				t.Fatalf("%s: %v, rules in force: %v", name, err, n.Rules())
			}
			began := time.Now()
			var took time.Duration
			go func() {
				if err := heal(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				took = time.Since(began)
			}()
			if synctest.Wait(); len(n.Rules()) != 0 {
				t.Errorf("%s: while it is healed, rules in force: %v", name, n.Rules())
			}
			<-time.After(time.Second)
			if synctest.Wait(); took != tt.want {
				t.Errorf("%s: the heal took %v, want %v", name, took, tt.want)
			}
		})
	}
}
