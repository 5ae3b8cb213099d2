package faults

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
	"hammerlock/topologies"
)

var clockJump = Fault{
	Name:  "clock-jump",
	Arg:   oneOf("forward", "back"),
	Redis: true,
	Doc: "the clock of a lock's primary, or of a quorum of sites, steps forward by twice the lease " +
		"while the lock is held " +
		"(clock-jump:back: it steps back)",
	Needs:               Needs{Clock: true},
	UnavailableAttached: ownServers,
	Effect:              always(wrongClock),
	lasts:               untilTakenLasts,
	targets:             func(*topologies.Topology) []string { return []string{"forward", "back"} },
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		offset := 2 * t.TTL
		if t.Arg == "back" {
			offset = -offset
		}
		return t.clocks(ctx, offset, 1, fmt.Sprintf("the clock of %%s jumped by %s while w%%02d held a lock", offset))
	},
}

// wrongClock is the effect of a server clock that differs from the other clocks.
var wrongClock = history.Effect{Hits: []history.Party{history.Clocks}, Loses: history.LosesTime}

// fastRate is the speed of a clock relative to real time. A lease lasts a third of its time on such a clock.
const fastRate = 3

var clockRate = Fault{
	Name:                "clock-rate",
	Redis:               true,
	Doc:                 "the clock of a lock's primary, or of a quorum of sites, runs three times as fast",
	Needs:               Needs{Clock: true},
	UnavailableAttached: ownServers,
	Effect:              always(wrongClock),
	lasts:               untilTakenLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		return t.clocks(ctx, 0, fastRate,
			fmt.Sprintf("the clock of %%s ran %d times as fast while w%%02d held a lock", fastRate))
	},
}

// clocks changes the clock of each server that keeps a held lock: it adds an offset and sets the speed (1 = real
// time). The holder is paused until another worker has the lock.
func (t *Target) clocks(ctx context.Context, offset time.Duration, rate float64, text string) (string, Heal, error) {
	return t.forget(ctx, text, func(_ context.Context, n *topologies.Node, _ string) (Heal, error) {
		return func(context.Context) error { return n.SetClock(0, 1) }, n.SetClock(offset, rate)
	})
}
