package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hammerlock/history"
	"hammerlock/topologies"
)

var errNoNode = errors.New("no node is up")

var restartEmpty = Fault{
	Name:  "restart-empty",
	Redis: true,
	Doc: "a node that granted a lock is killed and back at once without its data; " +
		"with independent sites as many as a " +
		"quorum can spare are down at the grant and come back too",
	UnavailableAttached: ownServers,
	Effect:              keysLost(true),
	lasts:               untilTakenLasts,
	Inject: func(ctx context.Context, t *Target) (string, Heal, error) {
		if t.Scene.Sites > 1 {
			return restartOfQuorum(ctx, t)
		}
		caught, err := t.holder(ctx, Granted)
		if err != nil {
			return "", nil, err
		}
		defer caught.Go()
		t.Caught = caught
		site, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		what := fmt.Sprintf("restarted %s without its data while w%02d held a lock", primary.Name, caught.Worker)
		if err := errors.Join(primary.Kill(), primary.Forget(), act(ctx, primary.Start)); err != nil {
			return what, nil, err
		}
		t.untilTaken(ctx, site, caught.Key)
		return what, nil, nil
	},
}

// restartOfQuorum stops a worker whose lock is held by exactly a quorum of sites, and restarts one of these sites
// without its keys.
func restartOfQuorum(ctx context.Context, t *Target) (string, Heal, error) {
	nodes := t.Topology.Nodes
	order := t.Rand.Perm(len(nodes))
	spare := order[:t.Scene.Sites-t.Scene.quorum()]
	forgetful := nodes[order[len(spare)]]
	down := make([]string, 0, len(spare))
	for _, i := range spare {
		down = append(down, nodes[i].Name)
		if err := nodes[i].Kill(); err != nil {
			return "", nil, err
		}
	}
	var errs []error
	caught, err := t.Workers.Catch(ctx, Granted, -1)
	for _, i := range spare {
		errs = append(errs, act(ctx, nodes[i].Start))
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return "", nil, err
	}
	defer caught.Go()
	what := fmt.Sprintf("%s were down when w%02d was granted a lock; they came back, and %s restarted without its data",
		strings.Join(down, " and "), caught.Worker, forgetful.Name)
	if err := errors.Join(forgetful.Kill(), forgetful.Forget(), act(ctx, forgetful.Start)); err != nil {
		return what, nil, err
	}
	t.untilTaken(ctx, t.Topology.Sites[spare[0]], caught.Key)
	return what, nil, nil
}

var untilTakenLasts = length{leases: 0.85}

// untilTaken waits until another worker has taken the lock on a site and has learned of its grant. It waits at most
// 80 % of a lease.
func (t *Target) untilTaken(ctx context.Context, site *topologies.Site, key int32) {
	ctx, cancel := context.WithTimeout(ctx, t.TTL*8/10)
	defer cancel()
	name := t.LockKey(key)
	first := t.owner(ctx, site, name)
	poll(ctx, func() bool {
		now := t.owner(ctx, site, name)
		return now != "" && now != first
	})
	sleep(ctx, t.TTL/20)
}

// owner returns the value of a lock's key on a site; empty if the lock is free or the node does not answer.
func (t *Target) owner(ctx context.Context, site *topologies.Site, name string) string {
	primary, err := site.Primary(ctx, name)
	if err != nil || primary.State() != topologies.Up {
		return ""
	}
	return content(ctx, primary, name)
}

// content returns the value of a key that is a string, or the field names of a hash, separated by spaces. It
// returns an empty text if the key does not exist, has another type, or cannot be read.
func content(ctx context.Context, n *topologies.Node, name string) string {
	if n.Do(ctx, "EXISTS", name).Val() == int64(0) {
		return ""
	}
	if text, err := n.Do(ctx, "GET", name).Text(); err == nil {
		return text
	}
	if fields, err := n.Do(ctx, "HKEYS", name).StringSlice(); err == nil {
		return strings.Join(fields, " ")
	}
	return ""
}

// lateLasts is the time for which restart-late leaves a server down: until every lease that it forgot has ended.
var lateLasts = length{leases: 1.1}

var restartLate = Fault{
	Name:                "restart-late",
	Doc:                 "the primary of a page's lock is killed and back, empty, after the longest lease is over",
	UnavailableAttached: ownServers,
	Effect: func(s Scene) history.Effect {
		e := outage(s)
		if s.Claims.Fences && !s.redundant() && !s.Keeps {
			// the leases have ended, but the counter of fencing tokens, which has no lease, is lost
			e.Loses, e.Spares = history.LosesKeys, false
		}
		return e
	},
	lasts: lateLasts,
	Inject: ofPrimary(func(ctx context.Context, t *Target, primary *topologies.Node) (string, Heal, error) {
		if err := primary.Kill(); err != nil {
			return "", nil, err
		}
		// The end of the run must not shorten this time: a server that is back too early would have forgotten a valid
		// lease.
		sleep(context.WithoutCancel(ctx), lateLasts.of(t.TTL))
		return fmt.Sprintf("killed %s and restarted it %s later", primary.Name, lateLasts.of(t.TTL)), nil,
			act(ctx, primary.Start)
	}),
}

var failoverLate = Fault{
	Name:  "failover-late",
	Redis: true,
	Doc: "the primary of a page's lock takes no writes until the longest lease is over; " +
		"then an operator lets a replica take its place",
	Unavailable:         needsHeirs,
	UnavailableAttached: ownServers,
	Effect:              outage,
	// there were no writes for so long that the replicas have everything
	breaks: func(Scene) string { return "" },
	lasts:  lateLasts,
	Inject: func(ctx context.Context, t *Target) (what string, _ Heal, _ error) {
		site, primary, _, err := t.primary(ctx)
		if err != nil {
			return "", nil, err
		}
		least := t.Topology.Options.MinReplicas
		err = act(ctx, func(ctx context.Context) error {
			writes := func(replicas int) error {
				return primary.Do(ctx, "CONFIG", "SET", "min-replicas-to-write", replicas).Err()
			}
			if err := writes(moreReplicas); err != nil {
				return err
			}
			sleep(ctx, lateLasts.of(t.TTL))
			next, err := site.Failover(ctx, primary)
			if err != nil {
				return errors.Join(err, writes(least))
			}
			what = fmt.Sprintf("%s took the place of %s, which had taken no writes for %s", next.Name, primary.Name,
				lateLasts.of(t.TTL))
			// until the old primary is demoted, both primaries could grant the same lock
			demoted := poll(ctx, func() bool {
				info, err := primary.Info(ctx, "replication")
				return err == nil && info["role"] == "slave"
			})
			if !demoted {
				return fmt.Errorf("%s still takes itself for the primary", primary.Name)
			}
			return writes(least)
		})
		return what, nil, err
	},
}
