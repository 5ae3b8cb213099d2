package topologies

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hammerlock/internal/live"
	"hammerlock/topologies/links"
)

// breaks are ways in which a client loses a server.
var breaks = map[string]func(*testing.T, *Topology) (heal func()){
	"drop": func(t *testing.T, top *Topology) func() {
		return apply(t, top, links.Rule{From: []links.Party{links.ClientParty(1)}, To: []links.Party{"n1"},
			Effect: links.Drop})
	},
	"drop answers": func(t *testing.T, top *Topology) func() {
		return apply(t, top, links.Rule{From: []links.Party{"n1"}, To: []links.Party{links.ClientParty(1)},
			OneWay: true, Effect: links.Drop})
	},
	"reset": func(t *testing.T, top *Topology) func() {
		return apply(t, top, links.Rule{From: []links.Party{links.ClientParty(1)}, To: []links.Party{"n1"},
			Effect: links.Reset})
	},
	"line": func(_ *testing.T, top *Topology) func() {
		line := top.Sites[0].line
		line.Cut(true)
		return func() { line.Cut(false) }
	},
	"pause": func(t *testing.T, top *Topology) func() {
		if err := top.Nodes[0].Pause(); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := top.Nodes[0].Resume(); err != nil {
				t.Error(err)
			}
		}
	},
}

// TestUnreachableIsCertain counts executed commands. There are at most as many as commands that succeeded or have an
// unknown outcome. A command with ErrUnreachable was never executed. Commands on new connections must get this mark.
func TestUnreachableIsCertain(t *testing.T) {
	t.Parallel()
	for name, f := range breaks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := up(t, "single", Options{Links: true})
			top.Sites[0].Over(new(Line))
			after := client(t, top, ClientOptions{Source: 2})
			live.Again(t, func(n int) (undecided string) {
				c, key := top.Sites[0].Client(ClientOptions{Source: 1}), nodeName("x", n)
				if err := connected(t, func() error { return c.Incr(t.Context(), key).Err() }); err != nil {
					_ = c.Close()
					return fmt.Sprintf("nothing is broken yet, and the server does not answer: %v", err)
				}
				heal := f(t, top)
				doubts, last := 1, error(nil) // the first of them succeeded
				for range 4 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if last = c.Incr(ctx, key).Err(); !errors.Is(last, ErrUnreachable) {
						doubts++
					}
					cancel()
				}
				heal()
				_ = c.Close()
				gone(t, top.Nodes[0], 1)
				if x, err := after.Get(t.Context(), key).Int(); err != nil || x < 1 || x > doubts {
					t.Errorf("executed %d times, at most %d could be, %v", x, doubts, err)
				}
				if last == nil || doubts > 2 { // as if a connection were not made within the second
					undecided = fmt.Sprintf("%d of 5 commands may have been executed; the last says %v", doubts, last)
				}
				return undecided
			})
		})
	}
}
