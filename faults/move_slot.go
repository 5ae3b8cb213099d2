package faults

import (
	"context"
	"fmt"
	"time"

	"hammerlock/history"
)

// movePause is the time for which clients get ASK replies, once before the keys of the slot move and once afterwards.
const movePause = 150 * time.Millisecond

var moveSlot = Fault{
	Name:  "move-slot",
	Redis: true,
	Doc: "the slot of a page's lock is moved to another primary of a cluster with its keys, of which none is lost: " +
		"clients hear ASK and TRYAGAIN, then MOVED",
	Unavailable:         When(func(s Scene) bool { return s.Topology != "cluster" }, "needs slots: topology cluster"),
	UnavailableAttached: ownServers,
	Effect:              always(history.Effect{Hits: []history.Party{history.Servers}, Blocks: true}),
	lasts:               length{besides: 3 * movePause},
	Inject: func(ctx context.Context, t *Target) (what string, _ Heal, err error) {
		site, _, key, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		err = act(ctx, func(ctx context.Context) error {
			from, to, err := site.Move(ctx, t.LockKey(key), movePause)
			if err == nil {
				what = fmt.Sprintf("%s gave the slot of page %d to %s", from.Name, key, to.Name)
			}
			return err
		})
		return what, nil, err
	},
}
