package faults

import (
	"context"
	"fmt"

	"hammerlock/history"
)

var expireSession = Fault{
	Name: "expire-session",
	Doc: "the servers end the session of a worker that was just granted a lock, " +
		"as if it had been silent for too long: " +
		"others are granted the lock before its client hears of that (etcd, ZooKeeper)",
	Unavailable: When(func(s Scene) bool { return !s.Can.Expire },
		"needs servers that keep sessions: topology etcd or zookeeper"),
	Effect: always(history.Effect{Hits: []history.Party{history.Servers}, Loses: history.LosesKeys}),
	lasts:  untilTakenLasts,
	Inject: holding(Granted, func(ctx context.Context, t *Target, caught *Caught) (string, Heal, error) {
		name := t.LockKey(caught.Key)
		if err := act(ctx, func(ctx context.Context) error { return t.Topology.Expire(ctx, name) }); err != nil {
			return "", nil, err
		}
		sleep(ctx, t.TTL/4) // other workers get the lock now; the holder learns later that it has lost it
		return fmt.Sprintf("ended the session of w%02d, which held a lock", caught.Worker), nil, nil
	}),
}
