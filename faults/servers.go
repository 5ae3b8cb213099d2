package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"hammerlock/topologies"
)

// policies are the eviction policies that can evict a held lock; the first is the default. Policies that count accesses
// (lfu) are left out, because they keep a key that is read often.
var policies = []string{"allkeys-lru", "allkeys-random", "volatile-lru", "volatile-random", "volatile-ttl"}

var evict = Fault{
	Name:  "evict",
	Arg:   oneOf(policies...),
	Redis: true,
	Doc: "a server runs out of memory and evicts keys, a lock that is held among them, by the maxmemory-policy " +
		"allkeys-lru (evict:volatile-ttl, :volatile-lru, :volatile-random, :allkeys-random: by that policy)",
	UnavailableAttached: ownMemory,
	Effect:              keysLost(false),
	lasts:               untilTakenLasts,
	targets:             func(*topologies.Topology) []string { return policies },
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		return t.forget(ctx, "evicted by %s: the lock that w%02d held",
			func(ctx context.Context, n *topologies.Node, name string) (Heal, error) {
				return pushOut(ctx, n, name, cmp.Or(t.Arg, policies[0]))
			})
	},
}

var flush = Fault{
	Name:   "flush",
	Redis:  true,
	Doc:    "an operator types FLUSHALL and SCRIPT FLUSH on a server while a lock is held",
	Sends:  []string{"flushall", "script-flush"},
	Effect: keysLost(false),
	lasts:  untilTakenLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		return t.forget(ctx, "flushed %s while w%02d held a lock",
			func(ctx context.Context, n *topologies.Node, _ string) (Heal, error) {
				return nil, errors.Join(n.Do(ctx, "FLUSHALL").Err(), n.Do(ctx, "SCRIPT", "FLUSH").Err())
			})
	},
}

// forget makes a quorum of sites lose the key of a held lock; with one site, it is that site. The holder is stopped
// until another worker has the lock.
func (t *Target) forget(ctx context.Context, text string,
	lose func(context.Context, *topologies.Node, string) (Heal, error)) (string, Heal, error) {
	caught, err := t.holder(ctx, Granted)
	if err != nil {
		return "", nil, err
	}
	defer caught.Go()
	name := t.LockKey(caught.Key)
	var names []string
	var heals []Heal
	order := t.Rand.Perm(len(t.Topology.Sites))[:t.Scene.quorum()]
	for _, i := range order {
		primary, err := t.Topology.Sites[i].Primary(ctx, name)
		if err != nil {
			return "", all(heals), err
		}
		var heal Heal
		err = act(ctx, func(ctx context.Context) (err error) {
			heal, err = lose(ctx, primary, name)
			return err
		})
		if heal != nil {
			heals = append(heals, heal)
		}
		if err != nil {
			return "", all(heals), fmt.Errorf("node %s: %w", primary.Name, err)
		}
		names = append(names, primary.Name)
	}
	t.untilTaken(ctx, t.Topology.Sites[order[0]], caught.Key)
	return fmt.Sprintf(text, strings.Join(names, "+"), caught.Worker), all(heals), nil
}

// room is the number of bytes of filling keys that a server takes before it evicts.
const room = 2 << 20

// fillerLasts is the TTL of the filling keys. They need a TTL so that a volatile policy may evict them, and they
// expire after all locks.
const fillerLasts = time.Hour

// pushOut fills a server's memory with keys until it evicts the lock's key. The policies prefer the lock's key,
// because the filling keys were used more recently and expire later.
func pushOut(ctx context.Context, n *topologies.Node, name, policy string) (Heal, error) {
	info, err := n.Info(ctx, "memory")
	if err != nil {
		return nil, err
	}
	var used int64
	if _, err := fmt.Sscan(info["used_memory"], &used); err != nil {
		return nil, err
	}
	heal := func(ctx context.Context) error {
		return errors.Join(
			n.Do(ctx, "EVAL", `for i = 0, 4095 do redis.call("DEL", KEYS[1] .. i) end return 1`, 1, filler(name)).Err(),
			n.Do(ctx, "CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction").Err())
	}
	if err := n.Do(ctx, "CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", used+room,
		"maxmemory-samples", 64).Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	for i := 0; n.Do(ctx, "EXISTS", name).Val() != int64(0); i++ {
		if ctx.Err() != nil {
			return heal, fmt.Errorf("the lock was not evicted: %w", context.Cause(ctx))
		}
		if err := n.Do(ctx, "SET", fmt.Sprintf("%s%d", filler(name), i%4096),
			strings.Repeat("x", 16<<10), "EX", int(fillerLasts.Seconds())).Err(); err != nil {
			return heal, err
		}
	}
	return heal, nil
}

// filler returns the prefix of the filling keys. It begins with the lock's key and so has the same hash tag, which
// keeps these keys in the lock's cluster slot.
func filler(name string) string { return name + ":filler:" }

// sleepFor is the time for which the server does nothing. It is too short for the server to be declared dead: with
// the fast timers of the suite, sentinels and clusters do that after 500 ms.
const sleepFor = 200 * time.Millisecond

var slowServer = Fault{
	Name:   "slow-server",
	Redis:  true,
	Doc:    "the primary of a page's lock does nothing for 200 ms, as in a slow command, twice",
	Sends:  []string{"client-pause"},
	Effect: hang,
	lasts:  length{besides: 3 * sleepFor},
	Inject: ofPrimary(func(ctx context.Context, _ *Target, primary *topologies.Node) (_ string, _ Heal, err error) {
		slept := func(ctx context.Context) error { return primary.Sleep(ctx, sleepFor) }
		if err := act(ctx, slept); err != nil {
			return "", nil, err
		}
		times := "once"
		if sleep(ctx, sleepFor) {
			times, err = "twice", act(ctx, slept)
		}
		return "kept " + primary.Name + " busy " + times + " for " + sleepFor.String(), nil, err
	}),
}
